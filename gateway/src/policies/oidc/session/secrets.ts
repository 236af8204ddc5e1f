import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { SecretSource } from '../../../schema/dsl.ts'

const minLength = 32

/**
 * Returns the secrets of the cookies, the current one first: those of the configuration, of the environment,
 * the session key, or the key of the process. Throws if one of them is too short.
 */
export function compileSecrets(
  configured: readonly SecretSource[] | undefined,
  context: CompileContext,
): readonly [Uint8Array, ...Uint8Array[]] {
  const { loginSecrets, sessionKey, processKey, memory, log, readFile, retained } = context
  if (configured !== undefined)
    return bytesOf(
      configured.map((secret) => (typeof secret === 'string' ? secret : readFile(secret.file).trim())),
      'session.secrets',
    )
  if (loginSecrets !== undefined)
    return bytesOf(
      loginSecrets.split(',').map((text) => text.trim()),
      'OIDC_COOKIE_SECRET',
    )
  if (sessionKey !== undefined) return [Buffer.from(sessionKey)]
  retained('oidc: warning of secrets', () => {
    if (memory.plane === 0)
      log.warn({}, 'OIDC_COOKIE_SECRET not set: a restart ends all logins, and replicas do not share them')
    return {}
  })
  return [processKey]
}

function bytesOf(texts: readonly string[], name: string): readonly [Uint8Array, ...Uint8Array[]] {
  if (texts.some((text) => text.length < minLength))
    throw new Error(`oidc: ${name} must have at least ${minLength} characters`)
  const [first, ...others] = texts.map((text) => Buffer.from(text))
  if (first === undefined) throw new Error(`oidc: ${name} must have a secret`)
  return [first, ...others]
}
