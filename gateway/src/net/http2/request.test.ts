import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultServerLimits } from '../http/incoming-request.ts'
import { readRequestHead } from './request.ts'

function read(fields: Record<string, string>, ...more: string[]) {
  const all = { ':method': 'GET', ':scheme': 'http', ':path': '/a', ':authority': 'h.test', ...fields }
  return readRequestHead([...Object.entries(all).flat(), ...more], defaultServerLimits)
}

describe('the head of an HTTP/2 request', () => {
  it('is converted to HTTP/1', () => {
    expect(read({ 'x-a': '1' }, 'cookie', 'a=1', 'cookie', 'b=2', 'x-a', '2')).toEqual({
      kind: 'head',
      method: 'GET',
      target: '/a',
      headers: { host: 'h.test', 'x-a': '1, 2', cookie: 'a=1; b=2' },
    })
  })

  it.each([
    ['agree but for case', { host: 'H.test' }, 'h.test'],
    ['are only the header', { ':authority': '', host: 'other.test' }, 'other.test'],
  ])('has one host where authority and host %s', (_, fields, host) => {
    expect(read(fields)).toMatchObject({ kind: 'head', headers: { host } })
  })

  it.each([
    ['disagree', { host: 'other.test' }],
    ['are both missing', { ':authority': '' }],
    ['hold a credential', { ':authority': 'user:password@h.test' }],
    ['hold a list', { ':authority': '', host: 'a.test, b.test' }],
    ['hold a space', { ':authority': 'h.test x' }],
  ])('is refused where authority and host %s', (_, fields) => {
    expect(read(fields)).toMatchObject({ kind: 'refused', status: 400 })
  })

  it('is rejected with a second host', () => {
    expect(read({ host: 'h.test' }, 'host', 'h.test')).toMatchObject({ kind: 'refused', status: 400 })
  })

  it.each(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])(
    'is refused with the field %s',
    (name) => {
      expect(read({ [name]: 'x' })).toMatchObject({ kind: 'refused', status: 400 })
    },
  )

  it.each(['delete', 'Get', 'FOO', '', 'GET '])('is refused with the method "%s"', (method) => {
    expect(read({ ':method': method })).toMatchObject({ kind: 'refused', status: 400 })
  })

  it.each(['GET', 'DELETE', 'PATCH', 'QUERY', 'PROPFIND'])('has the method %s of HTTP/1', (method) => {
    expect(read({ ':method': method })).toMatchObject({ kind: 'head', method })
  })

  it('retains te, which HTTP/2 defines for trailers', () => {
    expect(read({ te: 'trailers' })).toMatchObject({ kind: 'head', headers: { te: 'trailers' } })
  })

  it('is rejected with too many bytes, in few fields or in many', () => {
    const many = Array.from({ length: 900 }, (_, index) => [`x-${index}`, '']).flat()
    expect(read({ 'x-long': 'a'.repeat(40_000) })).toMatchObject({ kind: 'refused', status: 431 })
    expect(read({}, ...many)).toMatchObject({ kind: 'refused', status: 431 })
  })

  it('has no line break in HTTP/1 if accepted', () => {
    const anything = fc.string({ unit: 'binary', maxLength: 12 })
    fc.assert(
      fc.property(anything, anything, anything, (method, path, authority) => {
        const head = read({ ':method': method, ':path': path, ':authority': authority })
        if (head.kind === 'refused') return
        const line = `${head.method} ${head.target} HTTP/1.1`
        expect(line.split(/\s/)).toHaveLength(3)
        expect(head.headers['host']).not.toMatch(/[\s@,]/)
      }),
    )
  })
})
