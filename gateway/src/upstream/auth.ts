import type { Headers } from '../net/http/headers.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { BackendAuthConfig } from './config.ts'

/**
 * Sets the credential for a backend on request headers. `clientCredential` is the accepted one of the client,
 * for passthrough.
 */
export type Authorize = (headers: Headers, clientCredential: string | undefined) => void

/**
 * Compiles `backendAuth`. Throws if the credential file is not readable or its content is not a credential.
 */
export function compileAuthorize(
  config: BackendAuthConfig | undefined,
  context: CompileContext,
): Authorize | undefined {
  if (config === undefined) return undefined
  const location = config.location?.header
  const header = location?.name.toLowerCase() ?? 'authorization'
  const prefix = location === undefined ? 'Bearer ' : (location.prefix ?? '')
  if (config.key === undefined) {
    return (headers, clientCredential) => {
      if (clientCredential !== undefined) headers[header] = prefix + clientCredential
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
    throw new Error(`${key.file} is not a credential: expected printable ASCII on one line`)
  return text
}

/** Whether a text is a valid credential. Other texts would fail or be truncated when a request is sent. */
export function isCredential(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}
