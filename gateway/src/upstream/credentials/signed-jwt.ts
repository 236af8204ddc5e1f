import {
  constants,
  createPrivateKey,
  hash,
  type KeyObject,
  type SignKeyObjectInput,
  sign,
  X509Certificate,
} from 'node:crypto'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { JwtSignConfig, SigningKeyConfig } from './oauth-config.ts'

/** Signs claims as a compact JWS (RFC 7515). */
export type SignJwt = (claims: Readonly<Record<string, unknown>>) => string

type Algorithm = NonNullable<JwtSignConfig['alg']>

export type SignerConfig = {
  readonly signingKey: SigningKeyConfig
  readonly alg?: Algorithm | undefined
  readonly kid?: string | undefined
  /** Certificate of the key in the header (RFC 7515 sections 4.1.6 and 4.1.8). */
  readonly certificate?: SigningKeyConfig | undefined
  readonly certificateHeader?: 'x5c' | 'x5t#S256' | undefined
}

/** Compiles a signer. Throws if the key is unreadable or does not fit the algorithm; never with the key. */
export function compileSigner(config: SignerConfig, context: CompileContext): SignJwt {
  const { signingKey, alg = 'RS256', kid } = config
  const key = readPrivateKey(signingKey, context)
  const problem = keyProblem(key, alg)
  if (problem !== undefined) throw new Error(problem)
  const input = signInput(key, alg)
  const certified = certificateHeaders(config, key, context)
  const header = encode({ alg, typ: 'JWT', ...(kid === undefined ? {} : { kid }), ...certified })
  return (claims) => {
    const text = `${header}.${encode(claims)}`
    return `${text}.${sign(`sha${alg.slice(2)}`, Buffer.from(text), input).toString('base64url')}`
  }
}

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** The header field with the certificate. Throws if it is invalid, or not that of the key. */
function certificateHeaders(
  { certificate, certificateHeader }: SignerConfig,
  key: KeyObject,
  { readFile }: CompileContext,
): Readonly<Record<string, unknown>> {
  if (certificate === undefined || certificateHeader === undefined) return {}
  const text = typeof certificate === 'string' ? certificate : readFile(certificate.file)
  const place = typeof certificate === 'string' ? 'certificate' : certificate.file
  const chain = (text.match(certificatePattern) ?? []).map((pem) => parseCertificate(pem, place))
  const [leaf] = chain
  if (leaf === undefined) throw new Error(`${place} is not a certificate: expected PEM`)
  if (!leaf.checkPrivateKey(key))
    throw new Error(`${place} must begin with the certificate of signingKey: their keys differ`)
  return certificateHeader === 'x5c'
    ? { x5c: chain.map(({ raw }) => raw.toString('base64')) }
    : { 'x5t#S256': hash('sha256', leaf.raw, 'base64url') }
}

function parseCertificate(pem: string, place: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw new Error(`${place} is not a certificate: expected PEM`, { cause })
  }
}

function readPrivateKey(source: SigningKeyConfig, { readFile }: CompileContext): KeyObject {
  const text = typeof source === 'string' ? source : readFile(source.file)
  try {
    return createPrivateKey(text)
  } catch {
    // The message of the library may contain a part of the text.
    throw new Error(
      `${typeof source === 'string' ? 'signingKey' : source.file} is not a private key: expected PEM`,
    )
  }
}

/** The reason why a text is not a key that can sign with an algorithm; undefined if it is. */
export function signingKeyProblem(pem: string, alg: Algorithm): string | undefined {
  try {
    return keyProblem(createPrivateKey(pem), alg)
  } catch {
    return 'is not a private key: expected PEM'
  }
}

const curves: Readonly<Record<string, string>> = { ES256: 'prime256v1', ES384: 'secp384r1' }

/** The reason why a key cannot sign with an algorithm (RFC 7518 section 3.1); undefined if it can. */
function keyProblem(
  { asymmetricKeyType, asymmetricKeyDetails }: KeyObject,
  alg: Algorithm,
): string | undefined {
  const curve = curves[alg]
  if (curve === undefined) {
    if (asymmetricKeyType !== 'rsa') return `${alg} requires an RSA key`
    return (asymmetricKeyDetails?.modulusLength ?? 0) < 2048
      ? `${alg} requires an RSA key of 2048 bits`
      : undefined
  }
  const fits = asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === curve
  return fits ? undefined : `${alg} requires an EC key of curve ${curve}`
}

function signInput(key: KeyObject, alg: Algorithm): SignKeyObjectInput {
  if (alg.startsWith('ES')) return { key, dsaEncoding: 'ieee-p1363' }
  if (!alg.startsWith('PS')) return { key }
  return { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
