/** A key as bytes, ready for comparison with the keys of a table. The bytes after the key are zero. */
export type StagedKey = {
  readonly bytes: Uint8Array
  /** The same bytes. */
  readonly words: Int32Array
  length: number
  hash: number
}

/** Creates space for keys of up to `maxBytes`, a multiple of 4. */
export function createStagedKey(maxBytes: number): StagedKey {
  const buffer = new ArrayBuffer(maxBytes)
  return { bytes: new Uint8Array(buffer), words: new Int32Array(buffer), length: 0, hash: 0 }
}

/** Writes a key as UTF-8; false if it is too long, or not Unicode (a surrogate without its pair). */
export function writeKey(staged: StagedKey, key: string): boolean {
  const { bytes } = staged
  const { length } = key
  if (length > bytes.length) return false
  for (let index = 0; index < length; index++) {
    const code = key.charCodeAt(index)
    if (code > 0x7f) return writeEncoded(staged, key)
    bytes[index] = code
  }
  return endKey(staged, length)
}

const encoder = new TextEncoder()

function writeEncoded(staged: StagedKey, key: string): boolean {
  if (!key.isWellFormed()) return false
  const { read, written } = encoder.encodeInto(key, staged.bytes)
  return read === key.length && endKey(staged, written)
}

function endKey(staged: StagedKey, length: number): boolean {
  staged.length = length
  const { bytes } = staged
  for (let index = length; index < bytes.length && (index & 3) !== 0; index++) bytes[index] = 0
  return true
}

/**
 * HalfSipHash-1-3 of the staged words and length. The seed is secret: clients choose keys, and must not find
 * keys with equal hashes.
 */
export function hashKey({ words, length }: StagedKey, seed0: number, seed1: number): number {
  let v0 = seed0
  let v1 = seed1
  let v2 = 0x6c796765 ^ seed0
  let v3 = 0x74656462 ^ seed1
  const count = (length + 3) >> 2
  // One round per word, one for the length, three to finish.
  for (let round = 0; round < count + 4; round++) {
    const word = round < count ? (words[round] ?? 0) : round === count ? length : 0
    if (round === count + 1) v2 ^= 0xff
    v3 ^= word
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= word
  }
  return v1 ^ v3
}
