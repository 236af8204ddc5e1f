import { certificateProblem, privateKeyProblem } from '../../../net/tls/server-tls.ts'
import type { ConfigMap, Secret } from '../../objects/core.ts'
import type { ObjectReference } from '../../objects/gateway-api.ts'
import type { ObjectSet } from '../../objects/object-set.ts'

/** A text of an object, or the reason why it is not usable. Messages never contain the text. */
export type TextReading =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'invalid-kind' | 'invalid'; readonly message: string }

/** The objects that contain texts. */
export type TextObjects = Pick<ObjectSet, 'Secret' | 'ConfigMap'>

/** Key of CA certificates in ConfigMaps and Secrets (Gateway API). */
const caKey = 'ca.crt'

/** Reads CA certificates from a ConfigMap or Secret of a namespace. */
export function readCa(
  { group = '', kind = 'ConfigMap', name }: ObjectReference,
  namespace: string,
  objects: TextObjects,
): TextReading {
  if (group !== '' || (kind !== 'ConfigMap' && kind !== 'Secret')) {
    const written = group === '' ? kind : `${group}/${kind}`
    return { kind: 'invalid-kind', message: `${written} "${name}" must be a ConfigMap or a Secret` }
  }
  const place = `${kind} "${namespace}/${name}"`
  const object = objects[kind].get(`${namespace}/${name}`)
  if (object === undefined) return { kind: 'invalid', message: `${place} does not exist` }
  const text = object.kind === 'Secret' ? secretText(object, caKey) : object.data?.[caKey]
  if (text === undefined || text.trim() === '') {
    return { kind: 'invalid', message: `${place} must have the key "${caKey}"` }
  }
  const problem = certificateProblem(text)
  if (problem !== undefined) return { kind: 'invalid', message: `${place}: "${caKey}" ${problem}` }
  return { kind: 'text', text }
}

/** A certificate with its key, PEM. */
export type KeyPair = { readonly cert: string; readonly key: string }

export type KeyPairReading =
  | { readonly kind: 'pair'; readonly pair: KeyPair }
  | { readonly kind: 'invalid'; readonly message: string }

/** Reads `tls.crt` and `tls.key` of a Secret. */
export function readKeyPair(secret: Secret | undefined, place: string): KeyPairReading {
  if (secret === undefined) return { kind: 'invalid', message: `${place} does not exist` }
  const cert = secretText(secret, 'tls.crt')
  const key = secretText(secret, 'tls.key')
  if (!cert || !key)
    return { kind: 'invalid', message: `${place} must have the keys "tls.crt" and "tls.key"` }
  const problem = certificateProblem(cert)
  if (problem !== undefined) return { kind: 'invalid', message: `${place}: "tls.crt" ${problem}` }
  const keyProblem = privateKeyProblem(key)
  if (keyProblem !== undefined) return { kind: 'invalid', message: `${place}: "tls.key" ${keyProblem}` }
  return { kind: 'pair', pair: { cert, key } }
}

/** The value of a key of a Secret, decoded; undefined if it is missing. */
export function secretText({ data, stringData }: Secret, key: string): string | undefined {
  if (stringData !== undefined && Object.hasOwn(stringData, key)) return stringData[key]
  if (data === undefined || !Object.hasOwn(data, key)) return undefined
  const encoded = data[key]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8')
}

/** The objects that references name, as inputs of a memo: undefined for missing ones. */
export function namedTexts(
  references: readonly ObjectReference[],
  namespace: string,
  { Secret, ConfigMap }: TextObjects,
): readonly (Secret | ConfigMap | undefined)[] {
  return references.map(({ kind, name }) =>
    (kind === 'Secret' ? Secret : ConfigMap).get(`${namespace}/${name}`),
  )
}
