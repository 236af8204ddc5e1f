import { certificateProblem } from '../../../net/tls/server-tls.ts'
import type { ConfigMap, Secret } from '../../objects/core.ts'
import { secretText } from '../../objects/secret-text.ts'
import { type KeyPair, keyPairOf } from '../../objects/tls-content.ts'

/** A text of an object, or the reason why it is not usable. Messages never contain the text. */
export type TextReading =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'invalid'; readonly message: string }

/** Key of CA certificates in ConfigMaps and Secrets (Gateway API). */
const caKey = 'ca.crt'

/** Reads CA certificates. `place` names the object in messages. */
export function readCa(object: ConfigMap | Secret, place: string): TextReading {
  const text = object.kind === 'Secret' ? secretText(object, caKey) : object.data?.[caKey]
  if (text === undefined || text.trim() === '') {
    return { kind: 'invalid', message: `${place} must have the key ${caKey}` }
  }
  const problem = certificateProblem(text)
  if (problem !== undefined) return { kind: 'invalid', message: `${caKey} of ${place} ${problem}` }
  return { kind: 'text', text }
}

export type KeyPairReading =
  | { readonly kind: 'pair'; readonly pair: KeyPair }
  | { readonly kind: 'invalid'; readonly message: string }

/** Reads `tls.crt` and `tls.key` of a Secret. `place` names it in messages. */
export function readKeyPair(secret: Secret, place: string): KeyPairReading {
  const content = keyPairOf(secret)
  if (content.kind === 'pair') return content
  if (content.kind === 'missing') {
    return { kind: 'invalid', message: `${place} must have the keys "tls.crt" and "tls.key"` }
  }
  return { kind: 'invalid', message: `${place} is not a certificate with its key: ${content.message}` }
}
