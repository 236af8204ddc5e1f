import { describe, expect, it } from 'vitest'
import { noTexts, queryOf, readViewer, textsOf } from './viewer.ts'

describe('the form of a client', () => {
  it('omits what is empty', () => {
    expect(readViewer({ ...noTexts, claims: ' ' })).toEqual({ kind: 'viewer', viewer: {} })
  })

  it('reads objects and names', () => {
    const texts = { ...noTexts, claims: '{"sub":"ada"}', targets: 'files, git*', source: '10.0.0.1' }
    expect(readViewer(texts)).toEqual({
      kind: 'viewer',
      viewer: { claims: { sub: 'ada' }, allowedTargets: ['files', 'git*'], source: '10.0.0.1' },
    })
  })

  it.each(['[]', '{', 'null', '"x"'])('refuses %s as claims', (claims) => {
    expect(readViewer({ ...noTexts, claims })).toMatchObject({
      kind: 'mistakes',
      mistakes: { claims: expect.any(String) },
    })
  })

  it('survives in an address', () => {
    const texts = { ...noTexts, claims: '{"sub":"a&b"}', headers: '{"x":"1"}' }
    expect(textsOf(new URLSearchParams(queryOf(texts)))).toEqual(texts)
  })
})
