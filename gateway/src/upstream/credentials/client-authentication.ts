import { randomUUID } from 'node:crypto'
import type { Headers } from '../../net/http/headers.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { SecretSource } from '../../schema/dsl.ts'
import type { ClientAuthConfig } from './oauth-config.ts'
import { compileSigner } from './signed-jwt.ts'

/** Adds the authentication of the gateway to a token request. */
export type AuthenticateClient = (headers: Headers, form: URLSearchParams) => void

const assertionSeconds = 60

/**
 * Compiles the authentication of a client (RFC 6749 section 2.3, RFC 7523 section 2.2). Throws if a file is
 * unreadable.
 */
export function compileClientAuthentication(
  config: ClientAuthConfig | undefined,
  context: CompileContext,
): AuthenticateClient {
  if (config === undefined) return () => {}
  const { clientId, method = 'clientSecretBasic' } = config
  if (method === 'privateKeyJwt') return byAssertion(config, context)
  const secret = readSecret(config.clientSecret, context)
  if (method === 'clientSecretPost') {
    return (_, form) => {
      form.append('client_id', clientId)
      if (secret !== undefined) form.append('client_secret', secret)
    }
  }
  const pair = `${formEncoded(clientId)}:${formEncoded(secret ?? '')}`
  const value = `Basic ${Buffer.from(pair).toString('base64')}`
  return (headers) => {
    headers['authorization'] = value
  }
}

function byAssertion(
  { clientId, signingKey, alg, kid, certificate, certificateHeader, assertionAudience }: ClientAuthConfig,
  context: CompileContext,
): AuthenticateClient {
  if (signingKey === undefined) throw new Error('clientAuth.signingKey must be set for privateKeyJwt')
  const sign = compileSigner({ signingKey, alg, kid, certificate, certificateHeader }, context)
  return (_, form) => {
    const seconds = Math.floor(context.clock.now() / 1_000)
    const times = { iat: seconds, exp: seconds + assertionSeconds }
    const claims = { iss: clientId, sub: clientId, aud: assertionAudience, jti: randomUUID(), ...times }
    form.append('client_id', clientId)
    form.append('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    form.append('client_assertion', sign(claims))
  }
}

function readSecret(source: SecretSource | undefined, { readFile }: CompileContext): string | undefined {
  if (source === undefined || typeof source === 'string') return source
  return readFile(source.file).trim()
}

/** RFC 6749 section 2.3.1 and appendix B. */
function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice(2)
}
