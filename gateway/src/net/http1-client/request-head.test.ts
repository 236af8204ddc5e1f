import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OutgoingRequest } from '../http-client/send.ts'
import { createRequestWriter } from './request-head.ts'

const prepare = createRequestWriter()

function write(request: Partial<OutgoingRequest>) {
  return prepare(
    { origin: '', path: '/', method: 'GET', headers: {}, body: undefined, ...request },
    'upstream.test',
  )
}

function head(request: Partial<OutgoingRequest>) {
  const prepared = write(request)
  return prepared.kind === 'prepared' ? prepared.head.split('\r\n') : prepared.reason
}

const source = { start() {}, resume() {}, cancel() {} }

describe('a request head', () => {
  it('has the host of the origin, the connection and the given fields', () => {
    const headers = { accept: '*/*', 'x-list': ['a', 'b'], 'x-latin': 'caf\u00e9\t' }
    expect(head({ path: '/a?b=\u00e9', headers })).toEqual([
      'GET /a?b=\u00e9 HTTP/1.1',
      'host: upstream.test',
      'connection: keep-alive',
      'accept: */*',
      'x-list: a',
      'x-list: b',
      'x-latin: caf\u00e9\t',
      '',
      '',
    ])
  })

  it('has the host of the request instead, once', () => {
    expect(head({ headers: { host: 'other.test' } })).toContain('host: other.test')
    expect(head({ headers: { host: 'other.test' } })).not.toContain('host: upstream.test')
    expect(head({ headers: { host: 'a', Host: 'b' } })).toBe('invalid field Host')
    expect(head({ headers: { host: ['a', 'b'] } })).toBe('invalid field host')
  })

  it.each([
    ['POST', undefined, 'content-length: 0'],
    ['PUT', '', 'content-length: 0'],
    ['POST', 'caf\u00e9', 'content-length: 5'],
    ['POST', Buffer.from('abc'), 'content-length: 3'],
    ['DELETE', 'abc', 'content-length: 3'],
    ['DELETE', undefined, undefined],
    ['GET', Buffer.alloc(0), undefined],
  ])('of %s with the body %j has %s', (method, body, field) => {
    const lines = head({ method, body })
    const found = Array.isArray(lines) ? lines.find((line) => line.startsWith('content-length')) : lines
    expect(found).toBe(field)
  })

  it('leaves the framing to a streaming body', () => {
    const declared = write({ method: 'POST', headers: { 'content-length': '12' }, body: source })
    expect(declared).toMatchObject({ declaredLength: 12, bytes: undefined })
    expect(declared).toMatchObject({
      head: expect.not.stringMatching(/content-length|transfer-encoding|\r\n\r\n/),
    })
    expect(write({ method: 'POST', body: source })).toMatchObject({ declaredLength: undefined })
  })

  it.each([
    ['HEAD', undefined, false],
    ['GET', 'body', false],
    ['DELETE', source, false],
    ['GET', undefined, true],
    ['POST', source, true],
  ])('of %s with the body %j permits another request: %s', (method, body, persistent) => {
    const prepared = write({ method, body })
    expect(prepared).toMatchObject({
      persistent,
      head: expect.stringContaining(`connection: ${persistent ? 'keep-alive' : 'close'}\r\n`),
    })
  })

  it('offers a protocol', () => {
    const prepared = write({ upgrade: 'websocket' })
    const option = 'connection: upgrade\r\nupgrade: websocket\r\n'
    expect(prepared).toMatchObject({ persistent: false, head: expect.stringContaining(option) })
    expect(head({ upgrade: 'a\r\nb: c' })).toBe('invalid upgrade')
  })
})

describe('an invalid request', () => {
  // U+010D and U+010A lose a byte in latin1 and become CR and LF.
  const smuggled = [
    'a\r\nb: c',
    'a\rb',
    'a\nb',
    'a\u0000',
    'a\u010d\u010ab: c',
    'a\u2028b',
    '\u{1f600}',
    'a\u007f',
  ]

  it.each(smuggled)('with the value %j is refused', (value) => {
    expect(head({ headers: { 'x-a': value } })).toBe('invalid value of field x-a')
    expect(head({ headers: { 'x-a': ['a', value] } })).toBe('invalid value of field x-a')
    expect(head({ headers: { host: value } })).toBe('invalid field host')
  })

  it.each([...smuggled, 'a b', '', 'a:', '\u00e9'])('with the name %j is refused', (name) => {
    expect(head({ headers: { [name]: 'a' } })).toBe(`invalid field ${name}`)
  })

  it.each([...smuggled.map((path) => `/${path}`), '', 'a', '/a b', '/a\t', 'http://a/', '*'])(
    'with the path %j is refused',
    (path) => {
      expect(head({ path })).toBe('invalid path')
    },
  )

  it.each(['', 'GET ', 'G\r\nET', 'G\u0000', 'CONNECT', 'G/', 'A'.repeat(65)])(
    'with the method %j is refused',
    (method) => {
      expect(head({ method })).toBe('invalid method')
    },
  )

  it.each(['connection', 'Transfer-Encoding', 'keep-alive', 'UPGRADE', 'expect'])(
    'with its own %s is refused',
    (name) => {
      expect(head({ headers: { [name]: 'close' } })).toBe(`invalid field ${name}`)
    },
  )

  it.each(['', '+3', '3, 3', '3\n', ' 3', '1e1', '9'.repeat(16)])(
    'with the content-length %j is refused',
    (length) => {
      const request = { method: 'POST', headers: { 'content-length': length }, body: source }
      expect(head(request)).toBe('invalid field content-length')
    },
  )

  it('with another length than its body, or two, is refused', () => {
    expect(head({ method: 'POST', headers: { 'content-length': '4' }, body: 'abc' })).toBe(
      'content-length mismatch',
    )
    const twice = { 'content-length': '3', 'Content-Length': '3' }
    expect(head({ method: 'POST', headers: twice, body: source })).toBe('invalid field Content-Length')
  })
})

it('any accepted request has one line per field', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('a', 'x-b', 'host', '\r\n', '\u010a'),
  )
  fc.assert(
    fc.property(fc.dictionary(text, text), text, text, (headers, path, method) => {
      const prepared = write({ headers, path: `/${path}`, method })
      if (prepared.kind !== 'prepared') return
      const bytes = Buffer.from(prepared.head, 'latin1').toString('latin1')
      expect(bytes).toBe(prepared.head)
      const others = Object.keys(headers).filter((name) => !/^(?:host|content-length)$/i.test(name)).length
      // Request line, host, connection, the length of an empty body, and the empty line.
      const lines = bytes.split('\r\n').filter((line) => !line.startsWith('content-length: 0'))
      expect(lines.length - 5).toBe(others)
      expect(bytes.replaceAll('\r\n', '')).not.toMatch(/[\r\n\0]/)
    }),
    { numRuns: 2_000 },
  )
})
