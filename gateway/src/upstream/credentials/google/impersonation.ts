import type { TokenFetch } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import type { Impersonation } from './credential-file.ts'
import {
  accepted,
  type CallTokenService,
  cloudScope,
  idToken,
  type RequestGoogleToken,
  requiredToken,
  type Wanted,
} from './token-request.ts'

const service = 'impersonation'

/**
 * Requests tokens of a service account with the token of another identity.
 * https://cloud.google.com/iam/docs/reference/credentials/rest
 */
export function impersonate(
  request: RequestGoogleToken,
  { url, delegates, lifetimeSeconds }: Impersonation,
  call: CallTokenService,
): RequestGoogleToken {
  const bodies = {
    access: JSON.stringify({ delegates, scope: [cloudScope], lifetime: `${lifetimeSeconds}s` }),
    id: (audience: string) => JSON.stringify({ delegates, audience, includeEmail: true }),
  }
  return async (wanted) => {
    const { token } = await request({ kind: 'access' })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const reply = await call({
      url: wanted.kind === 'id' ? url.replace(/:generateAccessToken$/, ':generateIdToken') : url,
      method: 'POST',
      headers,
      body: wanted.kind === 'id' ? bodies.id(wanted.audience) : bodies.access,
    })
    return impersonatedToken(reply, wanted, lifetimeSeconds)
  }
}

function impersonatedToken(reply: TokenFetch, wanted: Wanted, lifetimeSeconds: number): TimedToken {
  const { body } = accepted(reply, service)
  if (wanted.kind === 'id') return idToken(body['token'], service)
  return { token: requiredToken(body['accessToken'], service), lifetimeMs: lifetimeSeconds * 1_000 }
}
