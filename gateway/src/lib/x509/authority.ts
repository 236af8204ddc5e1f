import type { KeyObject, X509Certificate } from 'node:crypto'
import { type Issuer, keyIdentifier } from './certificate.ts'
import { objectIdentifier } from './der.ts'
import { type DerValue, readDer } from './read-der.ts'

const tags = { context0: 0xa0, context3: 0xa3, octetString: 0x04 } as const
const subjectKeyIdentifier = objectIdentifier('2.5.29.14')

/** Reads the issuer of certificates from the certificate of an authority (RFC 5280, 4.1). */
export function issuerOf({ raw, publicKey }: X509Certificate, key: KeyObject): Issuer {
  const [certificate] = readDer(raw)
  const [content] = valuesOf(certificate)
  // Version 1 has no tag for its version.
  const fields = valuesOf(content).filter(({ tag }) => tag !== tags.context0)
  const [, , , , subject] = fields
  if (subject === undefined) throw new Error('has no subject')
  return { name: subject.bytes, key, keyIdentifier: identifierIn(fields) ?? keyIdentifier(publicKey) }
}

function identifierIn(fields: readonly DerValue[]): Buffer | undefined {
  const [list] = valuesOf(fields.find(({ tag }) => tag === tags.context3))
  for (const extension of valuesOf(list)) {
    const parts = valuesOf(extension)
    if (parts[0]?.bytes.equals(subjectKeyIdentifier) !== true) continue
    const [identifier] = valuesOf(parts.find(({ tag }) => tag === tags.octetString))
    return identifier?.content
  }
  return undefined
}

function valuesOf(value: DerValue | undefined): DerValue[] {
  return value === undefined ? [] : readDer(value.content)
}
