import type { Breathe } from './breathe.ts'

const pieceLength = 64 * 1024

/**
 * The JSON text of plain data as bytes, made in turns with traffic. Lists may be long, and may be any iterable, whose items are
 * then made one by one; an item, and everything that is not in a list, is taken to be short.
 */
export async function jsonInTurns(value: unknown, breathe: Breathe): Promise<Buffer> {
  const pieces: Buffer[] = []
  let text = ''
  for (const part of textsOf(value)) {
    text += part
    if (text.length >= pieceLength) {
      pieces.push(Buffer.from(text))
      text = ''
    }
    const pause = breathe()
    if (pause) await pause
  }
  pieces.push(Buffer.from(text))
  return Buffer.concat(pieces)
}

function* textsOf(value: unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) {
    yield JSON.stringify(value) ?? 'null'
    return
  }
  if (isIterable(value)) {
    let before = '['
    for (const item of value) {
      yield before + (JSON.stringify(item) ?? 'null')
      before = ','
    }
    yield before === '[' ? '[]' : ']'
    return
  }
  let before = '{'
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue
    yield `${before}${JSON.stringify(key)}:`
    yield* textsOf(member)
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

function isIterable(value: object): value is Iterable<unknown> {
  return Symbol.iterator in value
}
