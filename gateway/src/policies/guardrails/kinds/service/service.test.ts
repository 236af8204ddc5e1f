import { describe, expect, it } from 'vitest'
import { parseEndpoint } from './endpoint.ts'
import { findFirst, piecesOf } from './pieces.ts'

describe('parseEndpoint', () => {
  it.each([
    ['api.example.com', { host: 'api.example.com:443', isTls: true, prefix: '' }],
    ['api.example.com:8443', { host: 'api.example.com:8443', isTls: true, prefix: '' }],
    ['https://api.example.com/base/', { host: 'api.example.com:443', isTls: true, prefix: '/base' }],
    ['http://127.0.0.1:9000', { host: '127.0.0.1:9000', isTls: false, prefix: '' }],
    ['https://[::1]:1', { host: '[::1]:1', isTls: true, prefix: '' }],
  ])('reads %s', (text, endpoint) => expect(parseEndpoint(text)).toEqual(endpoint))

  it.each(['', 'a b', 'ftp://a', 'https://user:pw@a', 'https://a?x=1', 'https://a#x', 'unix:/run/s', 'a:0'])(
    'refuses "%s"',
    (text) => expect(parseEndpoint(text)).toBeUndefined(),
  )
})

describe('piecesOf', () => {
  it('covers the text with overlaps and whole characters', () => {
    const text = '🙂a'.repeat(1_000)
    const pieces = piecesOf(text, 1_000)
    expect(pieces.every((piece) => piece.length <= 1_000 && piece.isWellFormed())).toBe(true)
    let covered = 0
    for (const piece of pieces) {
      const start = text.indexOf(piece, Math.max(0, covered - 201))
      expect(start).toBeLessThanOrEqual(covered)
      covered = start + piece.length
    }
    expect(covered).toBe(text.length)
    expect(piecesOf('short', 1_000)).toEqual(['short'])
  })
})

describe('findFirst', () => {
  it('returns the first result and asks no more after it', async () => {
    const asked: number[] = []
    const found = await findFirst([1, 2, 3, 4, 5, 6, 7, 8, 9], async (item) => {
      asked.push(item)
      return item === 2 ? 'two' : undefined
    })
    expect(found).toBe('two')
    expect(asked).toEqual([1, 2, 3, 4])
  })
})
