import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { GatewayError } from '../../lib/gateway-error.ts'
import { createSseParser, formatSseEvent, isEventStream, type SseEvent } from './sse.ts'

function parse(chunks: (string | Uint8Array)[], maxEventBytes = 10_000): SseEvent[] {
  const events: SseEvent[] = []
  const parser = createSseParser({ maxEventBytes, onEvent: (event) => events.push(event) })
  for (const chunk of chunks) parser.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
  parser.end()
  return events
}

describe('createSseParser', () => {
  it.each([
    ['line feeds', 'event: a\ndata: 1\n\n'],
    ['carriage returns', 'event: a\rdata: 1\r\r'],
    ['both', 'event: a\r\ndata: 1\r\n\r\n'],
    ['a mixture', 'event: a\rdata: 1\r\n\n'],
  ])('ends lines at %s', (_, text) => {
    expect(parse([text])).toEqual([{ event: 'a', data: '1' }])
  })

  it('does not parse a CR LF pair split between two chunks as an empty line', () => {
    expect(parse(['data: 1\r', '\ndata: 2\r', '\n\r', '\n'])).toEqual([{ data: '1\n2' }])
  })

  it('joins data lines with line feeds and preserves empty ones', () => {
    expect(parse(['data: a\ndata\ndata:\ndata:  b\n\n'])).toEqual([{ data: 'a\n\n\n b' }])
  })

  it('skips comments, unknown fields, and events without data', () => {
    expect(parse([': hello\nfoo: 1\n\nevent: ping\n\nid: 3\n\ndata: x\n\n'])).toEqual([{ data: 'x' }])
  })

  it('reads id and retry, and ignores malformed ones', () => {
    expect(parse(['id: 7\nretry: 1500\ndata: a\n\nid: a\0b\nretry: -1\ndata: b\n\n'])).toEqual([
      { id: '7', retry: 1500, data: 'a' },
      { data: 'b' },
    ])
  })

  it('reports id and retry without data', () => {
    const marks: object[] = []
    const events: SseEvent[] = []
    const parser = createSseParser({
      maxEventBytes: 100,
      onEvent: (event) => events.push(event),
      onMark: (mark) => marks.push(mark),
    })
    parser.push(Buffer.from('retry: 5\n\nevent: x\n\nid: a\n\n:\n\nid: b\ndata: c\n\n'))
    expect(marks).toEqual([{ retry: 5 }, { id: 'a' }])
    expect(events).toEqual([{ data: 'c', id: 'b' }])
  })

  it('treats an empty event name as none', () => {
    expect(parse(['event:\ndata: a\n\n'])).toEqual([{ data: 'a' }])
  })

  it('skips one byte order mark at the start only', () => {
    expect(parse(['\uFEFFdata: a\n\n\uFEFFdata: b\n\n'])).toEqual([{ data: 'a' }])
    expect(parse([Uint8Array.of(0xef), Uint8Array.of(0xbb), Uint8Array.of(0xbf), 'data: a\n\n'])).toEqual([
      { data: 'a' },
    ])
  })

  it('decodes a character split between two chunks', () => {
    const bytes = Buffer.from('data: 🚪\n\n')
    expect(parse([bytes.subarray(0, 8), bytes.subarray(8)])).toEqual([{ data: '🚪' }])
  })

  it('discards an event truncated by the end of the stream', () => {
    expect(parse(['data: a\n\ndata: b\n'])).toEqual([{ data: 'a' }])
  })

  it('reports nothing after end(), also when called within an event', () => {
    const events: SseEvent[] = []
    const parser = createSseParser({
      maxEventBytes: 100,
      onEvent: (event) => {
        events.push(event)
        parser.end()
      },
    })
    parser.push(Buffer.from('data: a\n\ndata: b\n\n'))
    parser.push(Buffer.from('data: c\n\n'))
    expect(events).toEqual([{ data: 'a' }])
  })

  it('copies an incomplete line', () => {
    const events: SseEvent[] = []
    const parser = createSseParser({ maxEventBytes: 100, onEvent: (event) => events.push(event) })
    const chunk = Buffer.from('data: ab')
    parser.push(chunk)
    chunk.fill(0)
    parser.push(Buffer.from('c\n\n'))
    expect(events).toEqual([{ data: 'abc' }])
  })

  it.each([
    ['one line', ['data: 0123456789\n\n']],
    ['a line without an end', ['data: 01', '23456789']],
    ['several lines', ['data: 012\ndata: 345\n\n']],
    ['a comment', [': 012345678901234567\n']],
  ])('reports an event past the limit once, made of %s, and stops', (_, chunks) => {
    const errors: GatewayError[] = []
    const events: SseEvent[] = []
    const parser = createSseParser({
      maxEventBytes: 15,
      onEvent: (event) => events.push(event),
      onError: (error) => errors.push(error),
    })
    for (const chunk of chunks) parser.push(Buffer.from(chunk))
    parser.push(Buffer.from('\n\ndata: 1\n\ndata: 01234567890123\n\n'))
    expect(errors.map((error) => error.code)).toEqual(['upstream_too_large'])
    expect(events).toEqual([])
  })

  it('applies the limit to each event', () => {
    expect(parse(['data: 012345\n\n'.repeat(50)], 15)).toHaveLength(50)
  })

  it('returns the same events for any chunk boundaries', () => {
    const line = fc.constantFrom(
      'data: a',
      'data:é🚪',
      'data',
      'event: x',
      'id: 1',
      'retry: 5',
      ': c',
      'x',
      '',
      '',
      '\uFEFFdata: b',
    )
    const ending = fc.constantFrom('\n', '\r', '\r\n')
    const stream = fc.array(fc.tuple(line, ending)).map((lines) => lines.flat().join(''))
    fc.assert(
      fc.property(stream, fc.array(fc.nat(12)), (text, cuts) => {
        const bytes = Buffer.from(text)
        const chunks: Uint8Array[] = []
        let at = 0
        for (const cut of cuts) {
          chunks.push(bytes.subarray(at, at + cut))
          at += cut
        }
        chunks.push(bytes.subarray(at))
        expect(parse(chunks)).toEqual(parse([bytes]))
      }),
    )
  })

  it('joins a long event that arrives byte by byte', () => {
    const bytes = Buffer.from(`data: ${'x'.repeat(200_000)}\n\n`)
    const events: SseEvent[] = []
    const parser = createSseParser({ maxEventBytes: 300_000, onEvent: (event) => events.push(event) })
    for (let at = 0; at < bytes.length; at += 1) parser.push(bytes.subarray(at, at + 1))
    expect(events[0]?.data).toHaveLength(200_000)
  })
})

describe('isEventStream', () => {
  it.each([
    ['text/event-stream', true],
    ['Text/Event-Stream; charset=utf-8', true],
    ['application/json', false],
    [undefined, false],
  ])('reads the content type %s as %s', (contentType, expected) => {
    expect(isEventStream(contentType === undefined ? {} : { 'content-type': contentType })).toBe(expected)
  })
})

describe('formatSseEvent', () => {
  it('writes every field and splits data at line ends', () => {
    expect(formatSseEvent({ event: 'e', id: '1', retry: 2, data: 'a\nb' })).toBe(
      'event: e\nid: 1\nretry: 2\ndata: a\ndata: b\n\n',
    )
  })

  it('does not start another field from a name', () => {
    expect(formatSseEvent({ event: 'a\ndata: injected', data: 'b' })).toBe(
      'event: adata: injected\ndata: b\n\n',
    )
  })

  it('is reversed by the parser', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((value) => !/[\r\0]/.test(value))
    const oneLine = text.filter((value) => value !== '' && !value.includes('\n') && !value.startsWith(' '))
    const event = fc.record(
      { event: oneLine, data: text, id: oneLine, retry: fc.nat() },
      { requiredKeys: ['data'] },
    )
    fc.assert(
      fc.property(event, (value) => {
        expect(parse([formatSseEvent(value)])).toEqual([value])
      }),
    )
  })
})
