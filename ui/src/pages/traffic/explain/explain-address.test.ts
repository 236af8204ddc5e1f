import { describe, expect, it } from 'vitest'
import { emptyDraft, explainAddress, readDraft, readHeaders, writeDraft } from './explain-address.ts'

describe('the request of the page', () => {
  it('is in the address and read back', () => {
    const draft = {
      gateway: 'edge',
      method: 'POST',
      host: 'a.example:8080',
      path: '/a?b=1&c=ü',
      headers: 'x: 1\ny: 2',
    }
    expect(readDraft(new URLSearchParams(writeDraft(draft)))).toEqual(draft)
    expect(writeDraft(emptyDraft)).toBe('')
  })

  it('is one that a route receives', () => {
    const address = explainAddress({
      hostnames: ['*.example.com'],
      matches: [{ path: { pathPrefix: '/v1' }, method: 'PUT' }],
    })
    expect(readDraft(new URLSearchParams(address.split('?')[1]))).toEqual({
      ...emptyDraft,
      method: 'PUT',
      host: 'www.example.com',
      path: '/v1',
    })
  })
})

describe('header lines', () => {
  it('are headers by name', () => {
    expect(readHeaders('x-a: 1\n\n x-b :  two: three ')).toEqual({
      kind: 'headers',
      headers: { 'x-a': '1', 'x-b': 'two: three' },
    })
  })

  it.each(['no colon', ': empty', 'a b: c'])('refuse %s with the line', (line) => {
    expect(readHeaders(`x: 1\n${line}`)).toMatchObject({
      kind: 'mistake',
      message: expect.stringContaining('Line 2'),
    })
  })
})
