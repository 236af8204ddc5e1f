import { describe, expect, it } from 'vitest'
import { textOf } from '../../../../test/fixtures/pipeline.ts'
import { type Verdict, verdictOf } from './verdict.ts'
import type { DescriptorStatus, HeaderField, LimitResponse } from './wire.ts'

function judge(answer: Partial<LimitResponse>): Verdict {
  return verdictOf({
    code: 'ok',
    statuses: [],
    responseHeaders: [],
    requestHeaders: [],
    body: undefined,
    ...answer,
  })
}

function status(remaining: number, more: Partial<DescriptorStatus> = {}): DescriptorStatus {
  const limit = { requestsPerUnit: 10, unit: 'minute' } as const
  return { code: 'ok', limit, remaining, resetSeconds: 30, ...more }
}

function fields(headers: Record<string, string>): HeaderField[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value }))
}

describe('a yes', () => {
  it('stands where its closest status stands', () => {
    const { refusal, status: limitStatus } = judge({
      statuses: [status(7), status(3, { resetSeconds: 5 }), status(4)],
    })
    expect(refusal).toBeUndefined()
    expect(limitStatus).toEqual({ limit: 10, remaining: 3, resetSeconds: 5 })
  })

  it('stands nowhere without limits', () => {
    expect(judge({ statuses: [status(0, { limit: undefined })] }).status).toBeUndefined()
  })

  it('prefers the headers of the service, in any case, to its statuses', () => {
    const sent = {
      'X-RateLimit-Limit': '10, 10;w=60',
      'X-RATELIMIT-REMAINING': '3',
      'x-ratelimit-reset': '9',
    }
    const { status: limitStatus, replyHeaders } = judge({
      responseHeaders: fields(sent),
      statuses: [status(1)],
    })
    expect(limitStatus).toEqual({
      limit: 10,
      remaining: 3,
      resetSeconds: 9,
      headerValues: ['10, 10;w=60', '3', '9'],
    })
    expect(replyHeaders).toEqual({})
  })

  it('shows further headers about a limit only together with its limitStatus', () => {
    const sent = { ratelimit: '"a";r=3', 'ratelimit-policy': '"a";q=10', 'x-quota': 'x' }
    const { status: limitStatus, replyHeaders } = judge({
      responseHeaders: fields(sent),
      statuses: [status(3)],
    })
    expect(limitStatus?.relatedHeaders).toEqual({ ratelimit: '"a";r=3', 'ratelimit-policy': '"a";q=10' })
    expect(replyHeaders).toEqual({ 'x-quota': 'x' })
  })

  it('passes headers on that cannot be compared', () => {
    const sent = { 'x-ratelimit-limit': 'many', 'x-ratelimit-remaining': 'some', 'x-ratelimit-reset': 'soon' }
    const { status: limitStatus, replyHeaders } = judge({
      responseHeaders: fields(sent),
      statuses: [status(1)],
    })
    expect(limitStatus).toBeUndefined()
    expect(replyHeaders).toEqual(sent)
  })

  it('passes on no more headers than clients and upstreams take', () => {
    const many = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, index) => [`x-${index}`, 'x'.repeat(50)]),
    )
    const { replyHeaders, requestHeaders } = judge({
      responseHeaders: fields(many),
      requestHeaders: fields(many),
    })
    for (const headers of [replyHeaders, requestHeaders]) {
      expect(JSON.stringify(headers).length).toBeLessThan(10_000)
      expect(headers).toHaveProperty('x-0')
    }
  })

  it('forwards headers that do not affect message framing', () => {
    const sent = [
      ...fields({
        'X-Fine': ' yes ',
        connection: 'close',
        'Transfer-Encoding': 'chunked',
        'content-length': '1',
        'content-type': 'text/html',
        host: 'evil',
        'a b': 'x',
        '': 'x',
        'x-split': 'a\r\nb: c',
        'x-null': '\0',
        'x-wide': '\u{1f600}',
        ':path': '/',
      }),
      { name: '__proto__', value: 'x' },
      { name: 'set-cookie', value: 'a=1' },
      { name: 'Set-Cookie', value: 'b=2' },
      { name: 'x-list', value: '1' },
      { name: 'x-list', value: '2' },
    ]
    const kept = { 'x-fine': 'yes', 'set-cookie': ['a=1', 'b=2'], 'x-list': '1, 2' }
    expect(judge({ responseHeaders: sent }).replyHeaders).toEqual(kept)
    expect(judge({ requestHeaders: sent }).requestHeaders).toEqual(kept)
  })
})

describe('anything else', () => {
  it.each(['overLimit', 'unknown'] as const)('as %s refuses, in the words of every limit', (code) => {
    const { refusal } = judge({ code })
    expect(refusal).toMatchObject({ status: 429, headers: { 'content-type': 'text/plain' } })
    expect(refusal && textOf(refusal)).toBe('rate limit exceeded')
  })

  it('has the body and headers of the service', () => {
    const { refusal } = judge({
      code: 'overLimit',
      body: Buffer.from('<p>no'),
      responseHeaders: fields({ 'Content-Type': 'text/html', 'Retry-After': '77' }),
      statuses: [status(0, { code: 'overLimit' })],
    })
    expect(refusal && textOf(refusal)).toBe('<p>no')
    expect(refusal?.headers).toEqual({
      'content-type': 'text/html',
      'retry-after': '77',
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': '30',
    })
  })

  it('names the limit that refuses longest, and that time to wait', () => {
    const { refusal } = judge({
      code: 'overLimit',
      statuses: [
        status(0, { resetSeconds: 500 }),
        status(0, { code: 'overLimit', resetSeconds: 20 }),
        status(0, { code: 'overLimit', resetSeconds: 40 }),
        status(0, { code: 'overLimit', limit: undefined, resetSeconds: 60 }),
      ],
    })
    expect(refusal?.headers['x-ratelimit-reset']).toBe('40')
    expect(refusal?.headers['retry-after']).toBe('40')
  })

  it('never names no time at all', () => {
    const statuses = [status(0, { code: 'overLimit', resetSeconds: 0 })]
    expect(judge({ code: 'overLimit', statuses }).refusal?.headers['retry-after']).toBe('1')
    const sent = { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '0' }
    const { refusal } = judge({ code: 'overLimit', responseHeaders: fields(sent) })
    expect(refusal?.headers).toMatchObject({ ...sent, 'retry-after': '1' })
  })

  it('has the reset time of its statuses if its headers have none', () => {
    const { refusal } = judge({
      code: 'overLimit',
      responseHeaders: fields({ 'x-ratelimit-limit': '10' }),
      statuses: [status(0, { code: 'overLimit' })],
    })
    expect(refusal?.headers).toMatchObject({ 'x-ratelimit-limit': '10', 'retry-after': '30' })
  })
})
