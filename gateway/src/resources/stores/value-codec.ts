import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue, parseJsonObject } from '../../lib/json/json.ts'

/** Path of a field in a value: keys of objects, indexes of lists. */
export type FieldPath = readonly (string | number)[]

/** Paths of the secret fields in a value of a kind. A path without a field is ignored. */
export type SecretPaths = (kind: string) => (value: JsonObject) => readonly FieldPath[]

export type ValueCodec = {
  /** The JSON text to store. */
  encode(kind: string, id: string, value: JsonObject): string
  decode(kind: string, id: string, text: string): DecodedValue
  /**
   * The JSON texts of two versions of a value for the history. Without a current key, secret fields are
   * replaced by fingerprints, equal for equal secrets of the two.
   */
  encodeVersions(
    kind: string,
    id: string,
    versions: readonly (JsonObject | undefined)[],
  ): (string | undefined)[]
  /** A text of `encodeVersions`. */
  decodeVersion(kind: string, id: string, text: string): DecodedVersion
}

/** Place of a secret that the history does not contain, and its salted hash. */
export type RemovedSecret = { readonly path: FieldPath; readonly fingerprint: string }

/** A value of the history. Removed secrets have their fingerprint in the value. */
export type DecodedVersion =
  | { readonly kind: 'value'; readonly value: JsonObject; readonly removed: readonly RemovedSecret[] }
  | { readonly kind: 'unreadable'; readonly reason: string }

export type DecodedValue =
  /** `isOld`: a previous key encrypted a part of it. */
  | { readonly kind: 'value'; readonly value: JsonObject; readonly isOld?: boolean }
  /** `partial`: the value with a random text in place of each field that cannot be decrypted. */
  | { readonly kind: 'unreadable'; readonly reason: string; readonly partial?: JsonObject }

/** Keys of `config.database`; `current` encrypts, all of them decrypt. */
export type EncryptionKeys = { readonly current: Buffer | undefined; readonly previous: readonly Buffer[] }

// Prefix of encoded strings: version 1 is encrypted, version 0 is the literal text after the prefix, and
// version 2, in the history only, is the salted hash of a removed secret. Plain strings with this prefix are
// stored as version 0, with or without a key, so that they are never decrypted.
const marked = /^enc:v(\d+):/
const markedInText = 'enc:v'
const literal = 'enc:v0:'
const encrypted = 'enc:v1:'
const fingerprintMark = 'enc:v2:'
const saltBytes = 12
const ivBytes = 12
const tagBytes = 16

/**
 * Encodes values for storage. With a current key, each secret field is encrypted with AES-256-GCM and bound
 * to its kind, id and path, so that a ciphertext moved elsewhere is rejected. Rows without encryption, and of
 * previous keys, remain readable.
 */
export function createValueCodec(
  { current: key, previous }: EncryptionKeys,
  secretPaths: SecretPaths,
): ValueCodec {
  const keys = key === undefined ? previous : [key, ...previous]
  // A random credential, valid neither here nor upstream. Also a valid URL, because URLs with credentials are
  // encrypted as a whole; names below `invalid` never resolve (RFC 6761).
  const placeholder = () => `http://${randomBytes(24).toString('hex')}.invalid/`
  const encode = (kind: string, id: string, value: JsonObject): string => {
    const text = JSON.stringify(value)
    const paths = key === undefined ? [] : secretPaths(kind)(value)
    if (paths.length === 0 && !text.includes(markedInText)) return text
    return encodeFields(text, value, paths, (secret, path) =>
      key === undefined ? '' : encrypt(secret, { key, kind, id, path }),
    )
  }
  const encodeVersion = (kind: string, value: JsonObject, salt: string): string =>
    encodeFields(JSON.stringify(value), value, secretPaths(kind)(value), (secret) =>
      fingerprintOf(secret, salt),
    )

  function decodeWith(text: string, decodeString: DecodeString): DecodedText {
    const value = parseJsonObject(text)
    if (value === undefined) return { kind: 'damaged', reason: 'its value is not a JSON object' }
    let reason: string | undefined
    if (text.includes(markedInText)) {
      replaceStrings(value, (string, path) => {
        const version = marked.exec(string)?.[1]
        if (version === undefined) return string
        if (version === '0') return string.slice(literal.length)
        const clear = decodeString(string, version, path)
        if (clear.kind === 'value') return clear.value
        reason ??= clear.reason
        return placeholder()
      })
    }
    return { kind: 'decoded', value, reason }
  }

  return {
    encode,
    decode(kind, id, text) {
      let isOld = false
      let isPartial = true
      const decoded = decodeWith(text, (string, version, path) => {
        const clear = version === '1' ? decrypt(string, { keys, kind, id, path }) : newerFormat
        if (clear.kind === 'value') isOld ||= clear.key !== key
        isPartial &&= clear !== newerFormat
        return clear
      })
      if (decoded.kind === 'damaged') return { kind: 'unreadable', reason: decoded.reason }
      const { value, reason } = decoded
      if (reason === undefined) return { kind: 'value', value, ...(isOld ? { isOld } : {}) }
      return { kind: 'unreadable', reason, ...(isPartial ? { partial: value } : {}) }
    },
    encodeVersions(kind, id, versions) {
      const salt = randomBytes(saltBytes).toString('base64url')
      return versions.map((value) => {
        if (value === undefined) return undefined
        return key === undefined ? encodeVersion(kind, value, salt) : encode(kind, id, value)
      })
    },
    decodeVersion(kind, id, text) {
      const removed: RemovedSecret[] = []
      const decoded = decodeWith(text, (string, version, path) => {
        if (version === '1') return decrypt(string, { keys, kind, id, path })
        if (version !== '2') return newerFormat
        removed.push({ path, fingerprint: string })
        return { kind: 'value', value: string, key: undefined }
      })
      const { reason } = decoded
      if (decoded.kind === 'damaged' || reason !== undefined)
        return { kind: 'unreadable', reason: reason ?? '' }
      return { kind: 'value', value: decoded.value, removed }
    },
  }
}

type DecodeString = (string: string, version: string, path: FieldPath) => Decrypted
type DecodedText =
  | { readonly kind: 'decoded'; readonly value: JsonObject; readonly reason: string | undefined }
  | { readonly kind: 'damaged'; readonly reason: string }

/** Replaces the fields at `paths`, and escapes other strings with the prefix. */
function encodeFields(
  text: string,
  value: JsonObject,
  paths: readonly FieldPath[],
  encodeField: (value: JsonValue, path: FieldPath) => string,
): string {
  const copy: JsonObject = JSON.parse(text)
  replaceStrings(copy, (string) => (marked.test(string) ? literal + string : string))
  for (const path of paths) {
    const found = findField(value, path)
    const target = findField(copy, path)
    // No target: a parent field is encoded already.
    if (found === undefined || target === undefined) continue
    setField(target.parent, target.name, encodeField(found.value, found.path))
  }
  return JSON.stringify(copy)
}

function fingerprintOf(secret: JsonValue, salt: string): string {
  return `${fingerprintMark}${salt}:${hash('sha256', salt + JSON.stringify(secret), 'base64url')}`
}

/** Whether a fingerprint is that of a secret. */
export function isFingerprintOf(fingerprint: string, secret: JsonValue): boolean {
  const [salt = ''] = fingerprint.slice(fingerprintMark.length).split(':')
  return fingerprintOf(secret, salt) === fingerprint
}

/** Settings of `config.database`: keys of 32 bytes as 64 hex digits or base64. */
export type EncryptionSettings = {
  readonly encryptionKey?: string | undefined
  /** Used for decryption only. */
  readonly previousEncryptionKeys?: readonly string[] | undefined
}

/** Throws if a text is not a key; the error does not contain it. */
export function readEncryptionKeys({
  encryptionKey,
  previousEncryptionKeys = [],
}: EncryptionSettings): EncryptionKeys {
  return {
    current: encryptionKey === undefined ? undefined : readEncryptionKey(encryptionKey),
    previous: previousEncryptionKeys.map(readEncryptionKey),
  }
}

function readEncryptionKey(text: string): Buffer {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  if (/^[A-Za-z0-9+/]{43}=?$|^[A-Za-z0-9_-]{43}=?$/.test(text)) return Buffer.from(text, 'base64')
  throw new Error('config.database.encryptionKey must be 32 bytes, as 64 hex digits or as base64')
}

type Place = { readonly kind: string; readonly id: string; readonly path: FieldPath }
type Decrypted =
  | { kind: 'value'; value: JsonValue; key: Buffer | undefined }
  | { kind: 'unreadable'; reason: string }

const newerFormat: Decrypted = {
  kind: 'unreadable',
  reason: 'it is encrypted in the format of a newer version of Tollgate',
}

function encrypt(value: JsonValue, { key, ...place }: Place & { key: Buffer }): string {
  const iv = randomBytes(ivBytes)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(boundTo(place))
  const body = cipher.update(JSON.stringify(value), 'utf8')
  return encrypted + Buffer.concat([iv, body, cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

function decrypt(text: string, { keys, ...place }: Place & { keys: readonly Buffer[] }): Decrypted {
  if (keys.length === 0) {
    return { kind: 'unreadable', reason: 'it is encrypted and config.database.encryptionKey is not set' }
  }
  const bytes = Buffer.from(text.slice(encrypted.length), 'base64url')
  for (const key of keys) {
    const value = decryptWith(key, bytes, boundTo(place))
    if (value !== undefined) return { kind: 'value', value, key }
  }
  const reason =
    'it cannot be decrypted: config.database.encryptionKey is not the key it was encrypted with, or the row was altered'
  return { kind: 'unreadable', reason }
}

/** Undefined if the key is wrong or the text was altered. */
function decryptWith(key: Buffer, bytes: Buffer, place: Buffer): JsonValue | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), {
      authTagLength: tagBytes,
    })
    decipher.setAAD(place).setAuthTag(bytes.subarray(-tagBytes))
    const body = decipher.update(bytes.subarray(ivBytes, -tagBytes), undefined, 'utf8')
    return JSON.parse(body + decipher.final('utf8'))
  } catch {
    return undefined
  }
}

function boundTo({ kind, id, path }: Place): Buffer {
  return Buffer.from(JSON.stringify([kind, id, ...path]))
}

type Container = JsonObject | JsonValue[]
type Field = { parent: Container; name: string | number; value: JsonValue; path: FieldPath }

/** The field at a path; indexes of lists are numbers in the resulting path, as in `replaceStrings`. */
export function findField(root: JsonObject, path: FieldPath): Field | undefined {
  let found: Field | undefined
  let node: JsonValue = root
  for (const step of path) {
    const field: Field | undefined = childOf(node, step, found?.path ?? [])
    if (field === undefined) return undefined
    found = field
    node = field.value
  }
  return found
}

function childOf(node: JsonValue, step: string | number, above: FieldPath): Field | undefined {
  if (Array.isArray(node)) {
    const index = Number(step)
    const value = Number.isInteger(index) ? node[index] : undefined
    return value === undefined ? undefined : { parent: node, name: index, value, path: [...above, index] }
  }
  if (!isJsonObject(node)) return undefined
  const name = String(step)
  const value = Object.hasOwn(node, name) ? node[name] : undefined
  return value === undefined ? undefined : { parent: node, name, value, path: [...above, name] }
}

/**
 * Replaces strings at any depth. Not recursive, because clients control the depth. Replacements are not
 * visited.
 */
function replaceStrings(root: JsonObject, replace: (string: string, path: FieldPath) => JsonValue): void {
  const open: { node: Container; path: FieldPath }[] = [{ node: root, path: [] }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, path } = next
    const names = Array.isArray(node) ? node.keys() : Object.keys(node)
    for (const name of names) {
      const value = childOf(node, name, path)?.value
      if (Array.isArray(value) || isJsonObject(value)) open.push({ node: value, path: [...path, name] })
      if (typeof value !== 'string') continue
      const replacement = replace(value, [...path, name])
      if (replacement !== value) setField(node, name, replacement)
    }
  }
}

/** Defined, not assigned: a key may be `__proto__`. */
export function setField(parent: Container, name: string | number, value: JsonValue): void {
  Object.defineProperty(parent, name, { value, writable: true, enumerable: true, configurable: true })
}
