import { createHash, randomBytes } from 'node:crypto'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'

/** Cookie that binds a login to the browser that started it. */
export type BrowserCookie = {
  /** Id of the browser, from its cookie or new. */
  readOrCreate(headers: Headers): string
  /** Digest of the id in the request's cookie; undefined without a cookie. */
  digest(headers: Headers): string | undefined
  setCookie(id: string): string
}

const lifetimeSeconds = 3_600
const idForm = /^[A-Za-z0-9_-]{43}$/

/**
 * Uses the `__Host-` prefix with HTTPS: no other host of the domain can set the cookie (RFC 6265bis section
 * 4.1.3).
 */
export function createBrowserCookie(origin: string): BrowserCookie {
  const isSecure = origin.startsWith('https:')
  const name = isSecure ? '__Host-tollgate-login' : 'tollgate-login'
  const attributes = `Path=/; Max-Age=${lifetimeSeconds}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

  function read(headers: Headers): string | undefined {
    const found = (firstHeader(headers, 'cookie') ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${name}=`))
    const id = found[0]?.slice(name.length + 1)
    // Of two cookies with the name, one is injected.
    return found.length === 1 && id !== undefined && idForm.test(id) ? id : undefined
  }

  return {
    readOrCreate: (headers) => read(headers) ?? randomBytes(32).toString('base64url'),
    digest(headers) {
      const id = read(headers)
      return id === undefined ? undefined : browserDigest(id)
    },
    setCookie: (id) => `${name}=${id}; ${attributes}`,
  }
}

export function browserDigest(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
