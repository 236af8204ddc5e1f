import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** An error unless the certificate bears one of the names: DNS names, IP addresses or URIs. */
export function checkCertificateNames(
  names: readonly string[],
  certificate: PeerCertificate,
): Error | undefined {
  const borne = (certificate.subjectaltname ?? '').split(', ')
  const bears = (name: string) =>
    borne.includes(`URI:${name}`) || checkServerIdentity(name, certificate) === undefined
  return names.some(bears) ? undefined : new Error(`the certificate bears none of: ${names.join(', ')}`)
}
