import { checkServerIdentity, type PeerCertificate } from 'node:tls'

/** Returns an error unless the certificate has one of the names: DNS names, IP addresses or URIs. */
export function checkCertificateNames(
  names: readonly string[],
  certificate: PeerCertificate,
): Error | undefined {
  const borne = (certificate.subjectaltname ?? '').split(', ')
  const bears = (name: string) =>
    borne.includes(`URI:${name}`) || checkServerIdentity(name, certificate) === undefined
  return names.some(bears)
    ? undefined
    : new Error(`the certificate has none of the names: ${names.join(', ')}`)
}
