import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineSplitter } from './lines.ts'

type Line = [text: string, whole: boolean]

function linesOf(chunks: readonly Uint8Array[], maxBytes = 100): Line[] {
  const lines: Line[] = []
  const splitter = createLineSplitter(maxBytes, (text, whole) => lines.push([text, whole]))
  for (const chunk of chunks) splitter.push(chunk)
  return lines
}

describe('the line splitter', () => {
  it('reports complete lines, without their ends, and empty ones too', () => {
    expect(linesOf([Buffer.from('a\r\n\nb\nc')])).toEqual([
      ['a', true],
      ['', true],
      ['b', true],
    ])
  })

  it('finds the same lines however the bytes are cut, inside a character too', () => {
    const piece = fc.constantFrom('a', 'é', '👍', '\n', '\r\n', '"x"')
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.nat(200)), (pieces, cuts) => {
        const bytes = Buffer.from(`${pieces.join('')}\n`)
        const places = [
          0,
          ...cuts.map((cut) => cut % bytes.length).sort((one, other) => one - other),
          bytes.length,
        ]
        const chunks = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
        expect(linesOf(chunks, 10_000)).toEqual(linesOf([bytes], 10_000))
      }),
    )
  })

  it('gives the beginning of a line that is too long once, and skips the rest of it', () => {
    expect(linesOf([Buffer.from('12345'), Buffer.from('6789'), Buffer.from('0\nnext\n')], 7)).toEqual([
      ['1234567', false],
      ['next', true],
    ])
  })

  it('takes a line of exactly the longest length', () => {
    expect(linesOf([Buffer.from('1234567\n')], 7)).toEqual([['1234567', true]])
  })

  it('does not keep the chunks it was given', () => {
    const chunk = Buffer.from('half')
    const lines: string[] = []
    const splitter = createLineSplitter(100, (text) => lines.push(text))
    splitter.push(chunk)
    chunk.fill('x')
    splitter.push(Buffer.from(' and half\n'))
    expect(lines).toEqual(['half and half'])
  })
})
