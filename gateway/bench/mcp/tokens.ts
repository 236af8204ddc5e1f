import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export const issuer = 'https://id.example.com/realms/bench'
export const audience = 'https://gateway.example.com/mcp'

export type Issuer = {
  /** The key set as JSON (RFC 7517), as it stands in a configuration. */
  keySet: string
  /** An access token of the size that identity providers make, good for a day. */
  token(subject: string): string
}

/** An identity provider without a server: it only signs (RFC 7515). */
export function createIssuer(algorithm: 'RS256' | 'ES256' = 'RS256'): Issuer {
  const { publicKey, privateKey } =
    algorithm === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'bench', use: 'sig', alg: algorithm }
  return {
    keySet: JSON.stringify({ keys: [key] }),
    token: (subject) => signed({ alg: algorithm, kid: 'bench', typ: 'JWT' }, claimsOf(subject), privateKey),
  }
}

function claimsOf(subject: string): object {
  const now = Math.floor(Date.now() / 1000)
  return {
    iss: issuer,
    aud: [audience, 'account'],
    sub: subject,
    iat: now,
    exp: now + 86_400,
    jti: `${subject}-${now}`,
    azp: 'bench-client',
    scope: 'openid profile email',
    email: `${subject}@example.com`,
    roles: ['reader', 'caller', 'offline_access'],
    groups: ['/engineering/platform', '/engineering/search'],
  }
}

function signed(header: object, claims: object, key: KeyObject): string {
  const input = `${encoded(header)}.${encoded(claims)}`
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
