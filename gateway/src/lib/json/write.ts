import type { JsonValue } from './json.ts'

declare global {
  // Part of ECMAScript 2026 and supported by Node; missing in the library of the compiler.
  interface JSON {
    isRawJSON(value: unknown): boolean
  }
}

/** Characters encoded per step. */
const pieceLength = 64 * 1024

/** The bytes of `JSON.stringify`, in short steps for any size. Undefined members are omitted. */
export function* writeJsonSteps(
  value: JsonValue | Readonly<Record<string, JsonValue | undefined>>,
): Generator<void, Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  let text = ''
  yield* write(value)
  flush()
  const whole = Buffer.allocUnsafe(size)
  let at = 0
  for (const piece of pieces) {
    at += piece.copy(whole, at)
    yield
  }
  return whole

  function flush(): void {
    const piece = Buffer.from(text)
    pieces.push(piece)
    size += piece.byteLength
    text = ''
  }

  function* write(item: JsonValue | Readonly<Record<string, JsonValue | undefined>>): Generator<void> {
    if (text.length >= pieceLength) {
      flush()
      yield
    }
    if (typeof item === 'string' && item.length > pieceLength) yield* writeString(item)
    else if (typeof item !== 'object' || item === null || JSON.isRawJSON(item)) text += JSON.stringify(item)
    else if (Array.isArray(item)) yield* writeArray(item)
    else yield* writeObject(item)
  }

  function* writeArray(items: readonly JsonValue[]): Generator<void> {
    let before = '['
    for (const item of items) {
      text += before
      yield* write(item)
      before = ','
    }
    text += before === '[' ? '[]' : ']'
  }

  function* writeObject(object: Readonly<Record<string, JsonValue | undefined>>): Generator<void> {
    let before = '{'
    for (const key in object) {
      const member = object[key]
      if (member === undefined) continue
      text += `${before}${JSON.stringify(key)}:`
      yield* write(member)
      before = ','
    }
    text += before === '{' ? '{}' : '}'
  }

  function* writeString(long: string): Generator<void> {
    text += '"'
    for (let from = 0; from < long.length; ) {
      let to = Math.min(from + pieceLength, long.length)
      // A lone surrogate would be written as an escape.
      if (to < long.length && isHighSurrogate(long.charCodeAt(to - 1))) to -= 1
      text += JSON.stringify(long.slice(from, to)).slice(1, -1)
      from = to
      flush()
      yield
    }
    text += '"'
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
