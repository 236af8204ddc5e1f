import { createPublicKey, type KeyObject } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'

/** Public key for signature verification, with its permitted algorithms. */
export type SigningKey = {
  readonly id: string | undefined
  readonly algorithms: readonly string[]
  readonly key: KeyObject
}

/** Usable keys of a JSON Web Key Set. */
export type KeySet = {
  /**
   * Finds the keys for a token. A key id selects keys by id; without one, the key must be the only key for
   * the algorithm.
   */
  find(id: string | undefined, algorithm: string): readonly SigningKey[]
  readonly size: number
  /** Number of unusable keys in the document. */
  readonly skipped: number
}

const maxKeys = 100

/**
 * Parses a key set (RFC 7517 section 5). Unusable keys are skipped; undefined if the text is not a key set.
 */
export function parseKeySet(text: string): KeySet | undefined {
  const entries = keysOf(text)
  if (entries === undefined) return undefined
  const keys = entries.slice(0, maxKeys).flatMap((entry) => signingKey(entry) ?? [])
  const byId = Map.groupBy(keys, (key) => key.id)
  return {
    find(id, algorithm) {
      const fitting = (id === undefined ? keys : (byId.get(id) ?? [])).filter((key) =>
        key.algorithms.includes(algorithm),
      )
      return id === undefined && fitting.length > 1 ? [] : fitting
    },
    size: keys.length,
    skipped: entries.length - keys.length,
  }
}

function keysOf(text: string): readonly JsonValue[] | undefined {
  try {
    const document: unknown = JSON.parse(text)
    if (!isJsonObject(document)) return undefined
    return Array.isArray(document['keys']) ? document['keys'] : undefined
  } catch {
    return undefined
  }
}

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
/**
 * Algorithms by curve. The key determines the algorithm, not the token (RFC 8725 section 3.1); none is
 * symmetric.
 */
const curveAlgorithms: Record<string, readonly string[]> = {
  'P-256': ['ES256'],
  'P-384': ['ES384'],
  'P-521': ['ES512'],
  Ed25519: ['EdDSA', 'Ed25519'],
}
const minRsaBits = 2048

function signingKey(entry: JsonValue): SigningKey | undefined {
  if (!isJsonObject(entry) || !isForSigning(entry)) return undefined
  const { kid, alg } = entry
  if (kid !== undefined && typeof kid !== 'string') return undefined
  const possible = algorithmsOf(entry)
  const algorithms = alg === undefined || alg === null ? possible : possible.filter((name) => name === alg)
  const key = algorithms.length === 0 ? undefined : publicKey(entry)
  return key && { id: kid, algorithms, key }
}

function isForSigning({ use, key_ops: operations }: JsonObject): boolean {
  if (use !== undefined && use !== 'sig') return false
  return !Array.isArray(operations) || operations.includes('verify')
}

function algorithmsOf({ kty, crv }: JsonObject): readonly string[] {
  if (kty === 'RSA') return rsaAlgorithms
  if ((kty !== 'EC' && kty !== 'OKP') || typeof crv !== 'string') return []
  return Object.hasOwn(curveAlgorithms, crv) ? (curveAlgorithms[crv] ?? []) : []
}

/** Reads the public members only, so that a private key published by mistake is not used. */
function publicKey(entry: JsonObject): KeyObject | undefined {
  const members = Object.fromEntries(
    ['kty', 'crv', 'n', 'e', 'x', 'y'].flatMap((name) => {
      const value = entry[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
  try {
    const key = createPublicKey({ key: members, format: 'jwk' })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? minRsaBits
    return bits < minRsaBits ? undefined : key
  } catch {
    // A malformed key counts as `skipped`.
    return undefined
  }
}
