import type { Body } from '../../net/http/body.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import { cookieName, cookiePairs, decoded, queryParts } from './credential-location.ts'
import type { CredentialPlaceConfig } from './place-config.ts'

/**
 * The part of an outgoing request that credentials change in place. `path` includes the query. `origin`,
 * `method` and `body` are undefined for calls of gRPC services.
 */
export type AuthorizedRequest = {
  headers: Headers
  path: string
  readonly origin?: string | undefined
  readonly method?: string | undefined
  body?: Body | string
}

/** Sets a credential on a request, in place of a value of the client at the same location. */
export type Place = (request: AuthorizedRequest, credential: string) => void

/** Location of bearer tokens (RFC 6750 section 2.1). */
const bearer = { name: 'authorization', prefix: 'Bearer ' }

/** Compiles the location of a credential in requests to a backend. Default: `authorization: Bearer`. */
export function compilePlacement(config: CredentialPlaceConfig | undefined): Place {
  if (config?.queryParameter !== undefined) return inQuery(config.queryParameter.name)
  if (config?.cookie !== undefined) return inCookie(config.cookie.name)
  const { name, prefix = '' } = config?.header ?? bearer
  const header = name.toLowerCase()
  return ({ headers }, credential) => {
    headers[header] = prefix + credential
  }
}

/** The credential at a location of a request; undefined if there is none. */
export type ReadPlaced = (request: Pick<AuthorizedRequest, 'headers' | 'path'>) => string | undefined

/** Compiles the reader of a credential that `compilePlacement` has set. */
export function compileReadPlaced(config: CredentialPlaceConfig | undefined): ReadPlaced {
  if (config?.queryParameter !== undefined) {
    const { name } = config.queryParameter
    return ({ path }) => {
      const mark = path.indexOf('?')
      const found = mark < 0 ? [] : queryParts(path.slice(mark))
      const part = found.find((each) => decoded(each.name) === name)
      return part && decoded(part.text.slice(part.text.indexOf('=') + 1))
    }
  }
  if (config?.cookie !== undefined) {
    const { name } = config.cookie
    return ({ headers }) => {
      const pair = cookiePairs(firstHeader(headers, 'cookie')).find((each) => cookieName(each) === name)
      return pair?.slice(pair.indexOf('=') + 1)
    }
  }
  const { name, prefix = '' } = config?.header ?? bearer
  const header = name.toLowerCase()
  return ({ headers }) => {
    const value = firstHeader(headers, header)
    return value?.startsWith(prefix) === true ? value.slice(prefix.length) : undefined
  }
}

function inQuery(parameter: string): Place {
  const name = encodeURIComponent(parameter)
  return (request, credential) => {
    const { path } = request
    const mark = path.indexOf('?')
    const kept =
      mark < 0 ? [] : queryParts(path.slice(mark)).filter((part) => decoded(part.name) !== parameter)
    const parts = [...kept.map(({ text }) => text), `${name}=${encodeURIComponent(credential)}`]
    request.path = `${mark < 0 ? path : path.slice(0, mark)}?${parts.join('&')}`
  }
}

function inCookie(cookie: string): Place {
  return ({ headers }, credential) => {
    const others = cookiePairs(firstHeader(headers, 'cookie')).filter((pair) => cookieName(pair) !== cookie)
    headers['cookie'] = [...others, `${cookie}=${cookieValue(credential)}`].join('; ')
  }
}

/** RFC 6265 section 4.1.1. Other characters are percent-encoded: a semicolon would start another cookie. */
function cookieValue(text: string): string {
  return text.replace(/[^\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]/gu, (other) => encodeURIComponent(other))
}
