import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/** Signs tokens, and publishes its key. */
export type TokenIssuer = {
  readonly issuer: string
  /** The key set as JSON, for `jwks` of a configuration. */
  readonly keys: string
  /** A token for `audience`, valid for five minutes unless `exp` is given. */
  token(claims?: Record<string, unknown>): Promise<string>
}

export async function createTokenIssuer(issuer: string, audience: string): Promise<TokenIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const kid = `key of ${issuer}`
  const jwk = { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'ES256' }
  return {
    issuer,
    keys: JSON.stringify({ keys: [jwk] }),
    token: (claims = {}) =>
      new SignJWT({
        iss: issuer,
        aud: audience,
        exp: Math.floor(Date.now() / 1000) + 300,
        ...claims,
      })
        .setProtectedHeader({ alg: 'ES256', kid })
        .sign(privateKey),
  }
}
