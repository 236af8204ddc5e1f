import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareResponses } from '../../../../test/support/responses/compare.ts'
import { type Delivery, parsePieces } from '../../../../test/support/responses/outcome.ts'
import { maxBlockBytes } from './block.ts'
import { maxExtensionBytes } from './chunks.ts'
import { maxFields } from './fields.ts'

function parse(text: string, delivery: Partial<Delivery> = {}) {
  return parsePieces([Buffer.from(text, 'latin1')], { method: 'GET', ...delivery })
}

function refusal(text: string, delivery: Partial<Delivery> = {}) {
  const { kind, reason } = parse(text, delivery)
  return kind === 'refused' ? reason : kind
}

const ok = 'HTTP/1.1 200 OK\r\n'

/** A response with a chunked body. */
const chunks = (body: string) => `${ok}transfer-encoding: chunked\r\n\r\n${body}`

describe('a status line (RFC 9112 section 4)', () => {
  it.each([
    ['HTTP/1.1 200 OK', 200],
    ['HTTP/1.1 404 Not Found at all', 404],
    ['HTTP/1.1 200 ', 200],
    ['HTTP/1.1 200', 200],
    ['HTTP/1.0 999 \tcaf\u00e9', 999],
  ])('%j is accepted', (line, status) => {
    expect(parse(`${line}\r\ncontent-length: 0\r\n\r\n`)).toMatchObject({
      kind: 'complete',
      heads: [{ status }],
    })
  })

  it.each([
    'HTTP/1.2 200 OK',
    'HTTP/2.0 200 OK',
    'HTTP/0.9 200 OK',
    'http/1.1 200 OK',
    'HTTP/1.1  200 OK',
    'HTTP/1.1\t200 OK',
    'HTTP/1.1 20 OK',
    'HTTP/1.1 2000 OK',
    'HTTP/1.1 099 OK',
    'HTTP/1.1 2x0 OK',
    'HTTP/1.1 200\tOK',
    'HTTP/1.1 200 O\u0000K',
    'HTTP/1.1 200 O\u007fK',
    ' HTTP/1.1 200 OK',
    '\r\nHTTP/1.1 200 OK',
    '220 mail.example.com ESMTP',
    '',
  ])('%j is refused', (line) => {
    expect(refusal(`${line}\r\ncontent-length: 0\r\n\r\n`)).toBe('invalid status line')
  })

  it('of another protocol is refused before its end', () => {
    expect(refusal('220 mail.example.com ESMTP\r\n')).toBe('invalid status line')
    expect(refusal('SSH-2.0')).toBe('invalid status line')
    expect(refusal('HTTP/1.')).toBe('incomplete')
  })
})

describe('field lines (RFC 9112 section 5)', () => {
  it('become lower-case names and trimmed values, and lists if repeated', () => {
    const text = `${ok}Content-Length: 0\r\nX-A:  \t a b \t \r\nX-B:\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nSET-COOKIE: c\r\n\r\n`
    expect(parse(text).heads[0]?.headers).toEqual({
      'content-length': '0',
      'x-a': 'a b',
      'x-b': '',
      'set-cookie': ['a=1', 'b=2', 'c'],
    })
  })

  it('preserve bytes above ASCII, colons and all characters of tokens', () => {
    const text = `${ok}content-length: 0\r\n!#$%&'*+-.^_\`|~09azAZ: caf\u00e9: "x"\u0080\u00ff\r\n\r\n`
    const headers = parse(text).heads[0]?.headers ?? {}
    expect(headers["!#$%&'*+-.^_`|~09azaz"]).toBe('caf\u00e9: "x"\u0080\u00ff')
  })

  it('with names of object members are ordinary fields', () => {
    const text = `${ok}content-length: 0\r\n__proto__: a\r\nconstructor: b\r\nconstructor: c\r\n\r\n`
    const headers = parse(text).heads[0]?.headers ?? {}
    expect(Object.entries(headers)).toEqual([
      ['content-length', '0'],
      ['__proto__', 'a'],
      ['constructor', ['b', 'c']],
    ])
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
  })

  it.each([
    ['obsolete line folding', 'a: b\r\n c: d', 'invalid field name'],
    ['folding with a tab', 'a: b\r\n\tc', 'invalid field name'],
    ['a blank before the colon', 'a : b', 'invalid field name'],
    ['a blank before the name', ' a: b', 'invalid field name'],
    ['an empty name', ': b', 'invalid field name'],
    ['no colon', 'a', 'invalid field name'],
    ['a name above ASCII', 'caf\u00e9: b', 'invalid field name'],
    ['a name with a delimiter', 'a(b: c', 'invalid field name'],
    ['a name with NUL', 'a\u0000: b', 'invalid field name'],
    ['a bare CR', 'a: b\rc: d', 'invalid field value'],
    ['a bare LF', 'a: b\nc: d', 'invalid field value'],
    ['CR CR LF', 'a: b\r', 'invalid field value'],
    ['NUL', 'a: b\u0000', 'invalid field value'],
    ['a control character', 'a: b\u0001', 'invalid field value'],
    ['DEL', 'a: b\u007f', 'invalid field value'],
  ])('with %s are refused', (_, line, reason) => {
    expect(refusal(`${ok}content-length: 0\r\n${line}\r\n\r\n`)).toBe(reason)
  })

  it('with bare line ends are refused before the end of the head', () => {
    expect(refusal('HTTP/1.1 200 OK\n')).toBe('bare CR or LF')
    expect(refusal(`${ok}a: b\n`)).toBe('bare CR or LF')
    expect(refusal(`${ok}a: b\rc`)).toBe('bare CR or LF')
    expect(refusal(`${ok}a: b\r\n`)).toBe('incomplete')
  })

  it('are limited in number and bytes', () => {
    const fields = (count: number) => `${ok}content-length: 0\r\n${'a: b\r\n'.repeat(count - 1)}\r\n`
    expect(refusal(fields(maxFields))).toBe('complete')
    expect(refusal(fields(maxFields + 1))).toBe(`more than ${maxFields} fields`)
    const head = (bytes: number) => {
      const rest = `${ok}content-length: 0\r\na: \r\n\r\n`
      return rest.replace('a: ', `a: ${'b'.repeat(bytes - rest.length)}`)
    }
    for (const size of [maxBlockBytes, 1000]) {
      const inPieces = (bytes: number) => {
        const whole = Buffer.from(head(bytes), 'latin1')
        const pieces = Array.from({ length: Math.ceil(bytes / size) }, (_, index) =>
          whole.subarray(index * size, (index + 1) * size),
        )
        const { kind, reason } = parsePieces(pieces, { method: 'GET' })
        return kind === 'refused' ? reason : kind
      }
      expect(inPieces(maxBlockBytes)).toBe('complete')
      expect(inPieces(maxBlockBytes + 1)).toBe(`more than ${maxBlockBytes} bytes of fields`)
    }
    expect(refusal(`${ok}a: ${'b'.repeat(maxBlockBytes)}`)).toBe(`more than ${maxBlockBytes} bytes of fields`)
  })
})

describe('the length of a body (RFC 9112 section 6.3)', () => {
  it('comes from content-length, and further bytes are not part of it', () => {
    expect(parse(`${ok}content-length: 5\r\n\r\nhello`)).toMatchObject({ kind: 'complete', body: 'hello' })
    expect(parse(`${ok}content-length: 2\r\n\r\nhello`)).toMatchObject({ kind: 'complete', body: 'he' })
    expect(parse(`${ok}content-length: 007\r\n\r\nhello, you`)).toMatchObject({ body: 'hello, ' })
    expect(parse(`${ok}content-length: 6\r\n\r\nhello`)).toMatchObject({ kind: 'incomplete', body: 'hello' })
  })

  it('is the end of the connection without either, after which no request follows', () => {
    const outcome = parse(`${ok}\r\nhello`)
    expect(outcome).toMatchObject({ kind: 'complete', body: 'hello', heads: [{ persistent: false }] })
  })

  it.each([
    ['204', 'GET', 'content-length: 5'],
    ['304', 'GET', 'content-length: 5'],
    ['204', 'GET', 'transfer-encoding: chunked'],
    ['200', 'HEAD', 'content-length: 5'],
    ['200', 'HEAD', 'transfer-encoding: chunked'],
    ['200', 'HEAD', 'x: y'],
  ])('is zero for %s to %s with %s', (status, method, field) => {
    const outcome = parse(`HTTP/1.1 ${status} \r\n${field}\r\n\r\n`, { method })
    expect(outcome).toMatchObject({ kind: 'complete', body: '' })
    // The server may send the body all the same.
    if (method === 'GET') expect(outcome.heads[0]?.persistent).toBe(false)
  })

  it.each(['', '+5', '-5', '5, 5', '5,6', '5 5', '0x5', '5;', '1e1', '5.0', '\u00b2'])(
    '%j is refused',
    (value) => {
      expect(refusal(`${ok}content-length: ${value}\r\n\r\nhello`)).toBe('invalid content-length')
    },
  )

  it.each([
    ['content-length: 1234567890123456', 'content-length has too many digits'],
    ['content-length: 99999999999999999999', 'content-length has too many digits'],
    ['content-length: 5\r\ncontent-length: 5', 'repeated content-length'],
    ['content-length: 5\r\nContent-Length: 6', 'repeated content-length'],
    ['content-length: 5\r\ntransfer-encoding: chunked', 'content-length with transfer-encoding'],
    ['transfer-encoding: chunked\r\ncontent-length: 5', 'content-length with transfer-encoding'],
    ['transfer-encoding: gzip, chunked', 'unsupported transfer-encoding'],
    ['transfer-encoding: chunked, gzip', 'unsupported transfer-encoding'],
    ['transfer-encoding: chunked, chunked', 'unsupported transfer-encoding'],
    ['transfer-encoding: chunked\r\ntransfer-encoding: chunked', 'unsupported transfer-encoding'],
    ['transfer-encoding: chunked\t', 'tab in transfer-encoding'],
    ['transfer-encoding: identity', 'unsupported transfer-encoding'],
    ['transfer-encoding: xchunked', 'unsupported transfer-encoding'],
    ['transfer-encoding:', 'unsupported transfer-encoding'],
  ])('of %j is refused', (fields, reason) => {
    expect(refusal(`${ok}${fields}\r\n\r\nhello`)).toBe(reason)
    expect(refusal(`HTTP/1.1 204 \r\n${fields}\r\n\r\n`)).toBe(reason)
  })

  it('of chunks in HTTP/1.0 is refused', () => {
    const text = 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'
    expect(refusal(text)).toBe('transfer-encoding in HTTP/1.0')
  })
})

describe('chunks (RFC 9112 section 7.1)', () => {
  it('are joined, with ignored extensions and reported trailers', () => {
    const text = chunks(
      '3\r\nabc\r\n00A;x;y=z;q="a;\\"\r"\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n'.replace('\r"', '"'),
    )
    expect(parse(text)).toMatchObject({ kind: 'complete', body: 'abc0123456789', trailers: { 'x-sum': '1' } })
    expect(parse(chunks('0\r\n\r\n'))).toMatchObject({ kind: 'complete', body: '', trailers: undefined })
  })

  it.each([
    ['', 'incomplete'],
    ['3\r\nabc\r\n', 'incomplete'],
    ['0\r\n', 'incomplete'],
    ['0\r\n\r', 'incomplete'],
    ['g\r\n', 'invalid chunk size'],
    ['\r\n', 'invalid chunk size'],
    ['-1\r\n', 'invalid chunk size'],
    ['0x3\r\n', 'invalid chunk size'],
    [' 3\r\nabc', 'invalid chunk size'],
    ['3 \r\nabc', 'invalid chunk size'],
    ['3\nabc', 'invalid chunk size'],
    ['3\r\r\nabc', 'bare CR in a chunk size'],
    ['0000000000003\r\nabc', 'chunk size has too many digits'],
    ['ffffffffffffffff\r\nabc', 'chunk size has too many digits'],
    ['3;\r\nabc', 'invalid chunk extension'],
    ['3; a\r\nabc', 'invalid chunk extension'],
    ['3;a =b\r\nabc', 'invalid chunk extension'],
    ['3;a=\r\nabc', 'invalid chunk extension'],
    ['3;a="b\r\nabc', 'invalid chunk extension'],
    ['3;a="b"c\r\nabc', 'invalid chunk extension'],
    ['3;a\nabc', 'invalid chunk extension'],
    ['3;a\u0000\r\nabc', 'invalid chunk extension'],
    ['3\r\nabcd\r\n', 'invalid end of a chunk'],
    ['3\r\nabc\n', 'invalid end of a chunk'],
    ['3\r\nabc\r\r', 'invalid end of a chunk'],
    ['0\r\n\r\r', 'invalid end of a chunk'],
    ['0\r\na: b\n\r\n', 'bare CR or LF'],
    ['0\r\na b\r\n\r\n', 'invalid field name'],
    ['0\r\na: b\r\n c\r\n\r\n', 'invalid field name'],
  ])('%j are refused or incomplete', (body, reason) => {
    expect(refusal(chunks(body))).toBe(reason)
  })

  it('have limits on extensions and trailers', () => {
    const extended = (bytes: number) => chunks(`3;${'a'.repeat(bytes - 2)}\r\nabc\r\n0;a\r\n\r\n`)
    expect(refusal(extended(maxExtensionBytes - 2))).toBe('complete')
    expect(refusal(extended(maxExtensionBytes))).toBe('chunk extensions are too large')
    const trailers = (count: number) => chunks(`0\r\n${'a: b\r\n'.repeat(count)}\r\n`)
    expect(refusal(trailers(maxFields))).toBe('complete')
    expect(refusal(trailers(maxFields + 1))).toBe(`more than ${maxFields} fields`)
    expect(refusal(chunks(`0\r\na: ${'b'.repeat(maxBlockBytes)}\r\n\r\n`))).toBe(
      `more than ${maxBlockBytes} bytes of fields`,
    )
  })
})

describe('informational responses (RFC 9110 section 15.2)', () => {
  it('precede the final response', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\nlink: </a>\r\n\r\n${ok}content-length: 2\r\n\r\nok`
    const { kind, heads, body } = parse(text)
    expect([kind, heads.map(({ status }) => status), body]).toEqual(['complete', [100, 103, 200], 'ok'])
  })

  it('that close the connection are refused', () => {
    expect(refusal('HTTP/1.1 103 \r\nconnection: close\r\n\r\n')).toBe(
      'informational response closes the connection',
    )
    expect(refusal('HTTP/1.0 100 \r\n\r\n')).toBe('informational response closes the connection')
  })

  it('that announce a body are refused', () => {
    for (const field of ['content-length: 5', 'transfer-encoding: chunked']) {
      const text = `HTTP/1.1 103 \r\n${field}\r\n\r\n${ok}\r\n`
      expect(refusal(text)).toBe('informational response with a body')
    }
  })

  const upgraded = 'HTTP/1.1 101 \r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n'

  it('101 is accepted for an offered upgrade only', () => {
    expect(parse(upgraded, { upgrade: true }).heads).toMatchObject([{ status: 101 }])
    expect(refusal(upgraded)).toBe('unexpected protocol upgrade')
    const incomplete = [
      upgraded.replace('Upgrade', 'keep-alive'),
      'HTTP/1.1 101 \r\nconnection: upgrade\r\n\r\n',
    ]
    for (const text of incomplete)
      expect(refusal(text, { upgrade: true })).toBe('unexpected protocol upgrade')
  })
})

describe('persistence (RFC 9112 section 9.3)', () => {
  it.each([
    ['HTTP/1.1', undefined, true],
    ['HTTP/1.1', 'keep-alive', true],
    ['HTTP/1.1', 'close', false],
    ['HTTP/1.1', 'Keep-Alive, CLOSE', false],
    ['HTTP/1.1', 'TE,close ', false],
    ['HTTP/1.1', 'upgrade', true],
    ['HTTP/1.0', undefined, false],
    ['HTTP/1.0', 'Keep-Alive', true],
    ['HTTP/1.0', 'keep-alive, close', false],
  ])('of %s with %s is %s', (version, option, persistent) => {
    const field = option === undefined ? '' : `connection: ${option}\r\n`
    const text = `${version} 200 OK\r\n${field}content-length: 0\r\n\r\n`
    expect(parse(text).heads[0]?.persistent).toBe(persistent)
  })
})

describe('division into pieces', () => {
  const texts = [
    `HTTP/1.1 103 \r\nlink: </a>\r\n\r\n${ok}A: b\r\ncontent-length: 5\r\n\r\nhello`,
    chunks('3\r\nabc\r\n5;x="\\y"\r\nhello\r\n0\r\nX-Sum: 1\r\nb:\r\n\r\n'),
    `${ok}connection: close\r\n\r\nhello`,
    `${ok}a: b\r\n\tc: d\r\n\r\n`,
    chunks('3\r\nabcd\r\n'),
  ]

  it.each(texts)('at every byte, and at every pair of bytes, does not change %j', (text) => {
    const bytes = Buffer.from(text, 'latin1')
    const whole = parse(text)
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const pieces = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)]
        expect(parsePieces(pieces, { method: 'GET', pauses: true })).toEqual(whole)
      }
    }
  })

  it('a cut response is never complete', () => {
    const cuts = texts.slice(0, 2).flatMap((text) => Array.from(text, (_, end) => text.slice(0, end)))
    for (const text of cuts) expect(refusal(text)).toBe('incomplete')
  })

  it('delivers what chunks contain', () => {
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 10 })
    fc.assert(
      fc.property(pieces, fc.array(fc.nat({ max: 600 }), { maxLength: 10 }), (sent, cuts) => {
        const body = sent.map(
          (piece) => `${piece.length.toString(16)}\r\n${Buffer.from(piece).toString('latin1')}\r\n`,
        )
        const bytes = Buffer.from(chunks(`${body.join('')}0\r\n\r\n`), 'latin1')
        const ends = [...cuts.toSorted((a, b) => a - b), bytes.length]
        const parts = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
        const outcome = parsePieces(parts, { method: 'GET' })
        expect(outcome.kind).toBe('complete')
        expect(Buffer.from(outcome.body, 'latin1')).toEqual(Buffer.concat(sent))
      }),
    )
  })
})

describe('random responses', () => {
  it('have the same meaning for llhttp', () => {
    const { accepted, refused, stricter } = compareResponses({ seed: 1, cases: 20_000 })
    expect(accepted).toBeGreaterThan(5_000)
    expect(refused).toBeGreaterThan(2_000)
    expect(stricter).toBeGreaterThan(100)
  })
})
