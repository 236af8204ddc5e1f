import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

/** Facts of a verified client certificate, under their names in expressions. */
export type ClientCertificate = {
  /** PEM. */
  readonly certificate: string
  /** Distinguished names, most significant attribute first: `O=Example, CN=job`. */
  readonly issuer: string
  readonly subject: string
  /** Absent unless the subject has exactly one common name. */
  readonly subjectCn?: string
  /** DNS names, IP addresses, URIs and email addresses. */
  readonly subjectAltNames: readonly string[]
  /** First URI with the scheme `spiffe`. */
  readonly spiffeId?: string
  /** Parts of a SPIFFE id of the form `spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT`. */
  readonly identity?: {
    readonly trustDomain: string
    readonly namespace: string
    readonly serviceAccount: string
  }
}

/** Facts of a TLS handshake: `source.tls` of expressions. */
export type TlsFacts = {
  /** `TLSv1.2` or `TLSv1.3`. */
  readonly version: string
  /** Standard name of the cipher suite. */
  readonly cipherSuite: string
  readonly serverName?: string
  /** The SPIFFE id of the client certificate. */
  readonly identity?: string
  readonly subjectAltNames?: readonly string[]
  /** The same list in the spelling of agentgateway. */
  readonly subject_alt_names?: readonly string[]
}

/** Reads the facts of a completed handshake. `certificate` is the verified certificate of the client. */
export function readTlsFacts(
  socket: TLSSocket,
  serverName: string | undefined,
  certificate: ClientCertificate | undefined,
): TlsFacts {
  const facts = {
    version: socket.getProtocol() ?? '',
    cipherSuite: socket.getCipher()?.standardName ?? '',
    ...(serverName === undefined ? {} : { serverName }),
  }
  if (certificate === undefined) return facts
  const { spiffeId, subjectAltNames } = certificate
  return {
    ...facts,
    ...(spiffeId === undefined ? {} : { identity: spiffeId }),
    subjectAltNames,
    subject_alt_names: subjectAltNames,
  }
}

/**
 * Describes a verified certificate; undefined if it is outside its validity at `now` (ms since the epoch). A
 * resumed session has the certificate of its first handshake, which OpenSSL does not verify again.
 */
export function describeClientCertificate(
  certificate: X509Certificate,
  now: number,
): ClientCertificate | undefined {
  const { validFromDate, validToDate } = certificate
  if (now < validFromDate.getTime() || now > validToDate.getTime()) return undefined
  const subjectAltNames = parseAlternativeNames(certificate.subjectAltName ?? '')
  const subjectCn = commonNameOf(certificate.toLegacyObject().subject)
  const spiffeId = spiffeIdOf(certificate.subjectAltName ?? '')
  const identity = identityOf(spiffeId ?? '')
  return Object.freeze<ClientCertificate>({
    certificate: certificate.toString(),
    issuer: distinguishedName(certificate.issuer),
    subject: distinguishedName(certificate.subject),
    ...(subjectCn === undefined ? {} : { subjectCn }),
    subjectAltNames: subjectAltNames.map(({ value }) => value),
    ...(spiffeId === undefined ? {} : { spiffeId }),
    ...(identity === undefined ? {} : { identity }),
  })
}

type AlternativeName = { readonly type: string; readonly value: string }

const nameTypes: ReadonlySet<string> = new Set(['DNS', 'URI', 'IP Address', 'email'])
/** A type, and a text in which quotes mark special characters (CVE-2021-44532). */
const alternativeName = /([A-Za-z][A-Za-z ]*):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y
const maxNames = 1_000

/**
 * Parses the text form of subject alternative names. Returns no names at all if a part of the text has
 * another form, so that no name of a certificate is read from within another one.
 */
export function parseAlternativeNames(text: string): AlternativeName[] {
  const names: AlternativeName[] = []
  alternativeName.lastIndex = 0
  while (alternativeName.lastIndex < text.length) {
    const [, type = '', value = ''] = alternativeName.exec(text) ?? []
    const plain = value.startsWith('"') ? unquoted(value) : value
    if (type === '' || plain === undefined || names.length === maxNames) return []
    if (nameTypes.has(type)) names.push({ type, value: plain })
  }
  return names
}

function unquoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/** SPIFFE X.509-SVID section 2: a certificate has exactly one URI; with several none is its identity. */
function spiffeIdOf(text: string): string | undefined {
  const uris = parseAlternativeNames(text).filter(({ type }) => type === 'URI')
  const [first] = uris
  return uris.length === 1 && first?.value.startsWith('spiffe://') === true ? first.value : undefined
}

const istioId = /^spiffe:\/\/([^/?#]+)\/ns\/([^/?#]+)\/sa\/([^/?#]+)$/

function identityOf(spiffeId: string): ClientCertificate['identity'] {
  const [, trustDomain, namespace, serviceAccount] = istioId.exec(spiffeId) ?? []
  if (trustDomain === undefined || namespace === undefined || serviceAccount === undefined) return undefined
  return { trustDomain, namespace, serviceAccount }
}

function commonNameOf(subject: { CN?: unknown } | undefined): string | undefined {
  return typeof subject?.CN === 'string' ? subject.CN : undefined
}

/** One attribute per line, in which line breaks are escaped. */
function distinguishedName(lines: string | undefined): string {
  return (lines ?? '').split('\n').join(', ')
}
