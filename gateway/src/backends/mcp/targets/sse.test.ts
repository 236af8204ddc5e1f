import { afterEach, describe, expect, it, vi } from 'vitest'
import { createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySink } from '../../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { TargetFailure } from '../message/message.ts'
import { checkSse, compileSse } from './sse.ts'
import type { CallContext } from './target.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }

/** A session with a server whose event stream is the test's own. */
function start(refusals: Partial<Record<'GET' | 'POST', Reply | Error>> = {}) {
  const sent: OutgoingRequest[] = []
  const stream = { cancelled: false, resumed: 0, room: true }
  let body: BodySink | undefined
  const target = compileSse(
    'legacy',
    { host: 'http://old.test:81/events' },
    {
      log: silent,
      send(request) {
        sent.push(request)
        const refusal = refusals[request.method === 'GET' ? 'GET' : 'POST']
        if (refusal instanceof Error) return Promise.reject(refusal)
        if (refusal) return Promise.resolve(refusal)
        if (request.method === 'POST') return Promise.resolve({ status: 202, headers: {}, body: undefined })
        const source = {
          start(sink: BodySink) {
            body = sink
          },
          resume() {
            stream.resumed += 1
          },
          cancel() {
            stream.cancelled = true
          },
        }
        return Promise.resolve({
          status: 200,
          headers: { 'content-type': 'text/event-stream' },
          body: source,
        })
      },
    },
  )
  const session = target.open()
  const failures: (TargetFailure | undefined)[] = []
  const messages: string[] = []
  const context: CallContext = {
    headers: { 'x-client': 'me' },
    cancellation: createCancellation(),
    protocolVersion: '2025-03-26',
  }
  return {
    session,
    sent,
    stream,
    failures,
    messages,
    settled: () => new Promise(setImmediate),
    event(name: string, data: string) {
      stream.room = body?.write(Buffer.from(`event: ${name}\ndata: ${data}\n\n`)) ?? true
    },
    end: () => body?.end(),
    request(id: number) {
      const text = `{"jsonrpc":"2.0","id":${id},"method":"x"}`
      return session.request({ text, value: JSON.parse(text) }, context, {
        message(message) {
          messages.push(message.text)
          return false
        },
        mark() {},
        end() {},
        fail: (failure) => failures.push(failure),
      })
    },
  }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('a legacy SSE target', () => {
  it('waits for the endpoint before it posts, and posts in order', async () => {
    const { request, sent, event, settled } = start()
    request(1)
    request(2)
    await settled()
    expect(sent.map(({ method }) => method)).toEqual(['GET'])
    event('endpoint', '?session=7')
    expect(sent.slice(1).map(({ path, origin, body }) => [origin + path, body])).toEqual([
      ['http://old.test:81/events?session=7', '{"jsonrpc":"2.0","id":1,"method":"x"}'],
      ['http://old.test:81/events?session=7', '{"jsonrpc":"2.0","id":2,"method":"x"}'],
    ])
    expect(sent.map(({ headers }) => [headers['x-client'], headers['mcp-protocol-version']])).toEqual(
      Array.from({ length: 3 }, () => ['me', '2025-03-26']),
    )
  })

  it('uses the first endpoint event only', async () => {
    const { request, sent, event, settled } = start()
    request(1)
    await settled()
    event('endpoint', '/one')
    event('endpoint', '/two')
    request(2)
    expect(sent.slice(1).map(({ path }) => path)).toEqual(['/one', '/one'])
  })

  it.each([
    'http://evil.test/x',
    '//evil.test/x',
    'https://old.test:81/x',
    'http://old.test/x',
    'file:///etc',
    'http://',
  ])('rejects another origin: %s', async (endpoint) => {
    const { request, sent, event, settled, failures, stream } = start()
    request(1)
    await settled()
    event('endpoint', endpoint)
    expect(failures).toMatchObject([{ kind: 'error', error: { code: 'upstream_connect' } }])
    expect([sent.length, stream.cancelled]).toEqual([1, true])
  })

  it('fails without an endpoint event', async () => {
    vi.useFakeTimers()
    const { request, failures, stream } = start()
    request(1)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(failures).toEqual([])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(failures).toMatchObject([
      { kind: 'error', error: { message: expect.stringContaining('no endpoint event within') } },
    ])
    expect(stream.cancelled).toBe(true)
  })

  it('ends a stream that has not begun when the session is closed', async () => {
    const { request, session, sent } = start()
    request(1)
    await session.close()
    expect(sent.map(({ cancellation }) => cancellation?.cancelled)).toEqual([true])
  })

  it('pauses the stream while its reader is full', async () => {
    const { request, event, settled, stream, messages } = start()
    const flow = request(1)
    await settled()
    event('endpoint', '/m')
    for (let n = 0; n < 12; n += 1) {
      event('message', `{"jsonrpc":"2.0","method":"n","params":"${'x'.repeat(100_000)}"}`)
    }
    expect([messages.length, stream.room]).toEqual([1, false])
    flow.cancel()
    expect(stream.resumed).toBe(1)
  })

  it.each([
    [
      'a failed connection',
      new GatewayError('upstream_connect', 'refused'),
      { kind: 'error', error: { code: 'upstream_connect' } },
    ],
    [
      'a refusal',
      { status: 403, headers: {}, body: Buffer.from('no') },
      { kind: 'reply', reply: { status: 403 } },
    ],
    [
      'a redirect',
      { status: 307, headers: { location: 'http://x' }, body: undefined },
      { kind: 'error', error: { code: 'upstream_invalid' } },
    ],
    [
      'not an event stream',
      { status: 200, headers: {}, body: Buffer.from('{}') },
      { kind: 'error', error: { code: 'upstream_connect' } },
    ],
  ])('fails with %s', async (_, refusal, failure) => {
    const { request, failures, settled } = start({ GET: refusal })
    request(1)
    await settled()
    expect(failures).toMatchObject([failure])
  })

  it('fails a message that cannot be posted, and only that', async () => {
    const { session, request, event, settled, failures } = start({
      POST: new GatewayError('upstream_timeout', 'late'),
    })
    const deaths: string[] = []
    session.onTerminated((reason) => deaths.push(reason))
    request(1)
    await settled()
    event('endpoint', '/m')
    await settled()
    expect(failures).toMatchObject([{ kind: 'error', error: { code: 'upstream_timeout' } }])
    expect(deaths).toEqual([])
  })

  it('reports an invalid address', () => {
    const mistakes: string[] = []
    checkSse({ host: 'ftp://x' }, (path, message) => mistakes.push(`${path.join('.')}: ${message}`))
    expect(mistakes).toEqual([expect.stringContaining('host: ')])
  })
})
