import type { Headers } from '../net/http/headers.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { BackendAuthConfig } from './config.ts'

/** Puts the credential for a backend on the headers of a request to it. */
export type Authorize = (headers: Headers, exchange: Pick<Exchange, 'credential'> | undefined) => void

/** Throws when the credential's file cannot be read or does not hold a credential. */
export function compileAuthorize(
  config: BackendAuthConfig | undefined,
  context: CompileContext,
): Authorize | undefined {
  if (config === undefined) return undefined
  const location = config.location?.header
  const header = location?.name.toLowerCase() ?? 'authorization'
  const prefix = location === undefined ? 'Bearer ' : (location.prefix ?? '')
  if (config.key === undefined) {
    return (headers, exchange) => {
      const credential = exchange?.credential
      if (credential !== undefined) headers[header] = prefix + credential
    }
  }
  const value = prefix + readKey(config.key, context)
  return (headers) => {
    headers[header] = value
  }
}

function readKey(key: NonNullable<BackendAuthConfig['key']>, { readFile }: CompileContext): string {
  if (typeof key === 'string') return key
  const text = readFile(key.file).trim()
  if (!isCredential(text))
    throw new Error(`${key.file} does not hold a credential: printable ASCII on one line`)
  return text
}

/** Whether a text can be sent as a credential; anything else would fail, or be cut, only once a request is served. */
export function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
