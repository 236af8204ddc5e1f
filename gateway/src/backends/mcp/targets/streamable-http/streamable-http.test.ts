import { describe, expect, it } from 'vitest'
import { collect, fixtureContext, request, settle } from '../../../../../test/fixtures/mcp.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import { messageOf } from '../../message/json-rpc.ts'
import { compileStreamableHttp } from './streamable-http.ts'

type Stream = BodySource & {
  write(text: string): boolean
  end(): void
  fail(error: Error): void
  cancelled: boolean
}

function stream(): Stream {
  let sink: BodySink | undefined
  const source: Stream = {
    cancelled: false,
    start(reader) {
      sink = reader
    },
    resume() {},
    cancel() {
      source.cancelled = true
    },
    write: (text) => sink?.write(Buffer.from(text)) ?? false,
    end: () => sink?.end(),
    fail: (error) => sink?.fail(error),
  }
  return source
}

const json = (value: object, headers = {}): Reply => ({
  status: 200,
  headers: { 'content-type': 'application/json', ...headers },
  body: Buffer.from(JSON.stringify(value)),
})
const events = (body: BodySource, headers = {}): Reply => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream; charset=utf-8', ...headers },
  body,
})
const result = (id: number, value: object = {}) => ({ jsonrpc: '2.0', id, result: value })
const introduced = (version = '2025-06-18', id = 0) =>
  result(id, { protocolVersion: version, capabilities: {} })

function fixture(...replies: (Reply | Error | ((request: OutgoingRequest) => Reply))[]) {
  const sent: OutgoingRequest[] = []
  const target = compileStreamableHttp(
    'up',
    { host: 'http://up.test:81/mcp' },
    {
      async send(outgoing) {
        sent.push(outgoing)
        const reply = replies.shift()
        if (reply === undefined) throw new Error('unexpected request')
        if (reply instanceof Error) throw reply
        return typeof reply === 'function' ? reply(outgoing) : reply
      },
    },
  )
  return { target, sent }
}

/** A session that has been initialized. */
async function begun(...replies: Parameters<typeof fixture>) {
  const { target, sent } = fixture(json(introduced(), { 'mcp-session-id': 'up-1' }), ...replies)
  const session = target.open()
  session.request(request(0, 'initialize'), fixtureContext(), collect())
  await settle()
  sent.length = 0
  return { session, sent, target }
}

it.each([
  ...['initialize', 'ping', 'completion/complete', 'tools/list', 'prompts/list', 'prompts/get'].map(
    (method) => [method, true] as const,
  ),
  ...['resources/list', 'resources/templates/list', 'resources/read'].map(
    (method) => [method, true] as const,
  ),
  ...['tools/call', 'tasks/cancel', 'resources/subscribe', 'logging/setLevel', 'vendor/method'].map(
    (method) => [method, false] as const,
  ),
])('%s may be repeated: %s', async (method, isRepeatable) => {
  const used: string[] = []
  const by = (name: string) => async () => {
    used.push(name)
    return json(result(1))
  }
  const context = { send: by('send'), sendAgain: by('sendAgain') }
  const session = compileStreamableHttp('up', { host: 'http://up.test/mcp' }, context).open()
  session.request(request(1, method), fixtureContext(), collect())
  await settle()
  expect(used).toEqual([isRepeatable ? 'sendAgain' : 'send'])
})

describe('a request to a server over HTTP', () => {
  it('is posted as it was written, and its JSON answer delivered as it was written', async () => {
    const answer = '{"jsonrpc":"2.0", "id":1,"result":{"big":12345678901234567890}}'
    const { session, sent } = await begun({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(answer),
    })
    const text = '{"jsonrpc":"2.0","id":1 ,"method":"x"}'
    const sink = collect()
    session.request({ text, value: JSON.parse(text) }, fixtureContext({ headers: { 'x-team': 'a' } }), sink)
    await settle()
    expect(sent[0]).toMatchObject({ origin: 'http://up.test:81', path: '/mcp', method: 'POST', body: text })
    expect(sent[0]?.headers).toEqual({
      'x-team': 'a',
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
      'content-type': 'application/json',
      'mcp-session-id': 'up-1',
      'mcp-protocol-version': '2025-06-18',
    })
    expect(sink.texts).toEqual([answer])
    expect(sink.ended).toBe(true)
  })

  it('is answered by a stream, message by message, with ids and retry', async () => {
    const body = stream()
    const { session } = await begun(events(body))
    const sink = collect()
    session.request(request(1, 'tools/call'), fixtureContext(), sink)
    await settle()
    body.write('retry: 9\n\nid: a\nretry: 10\ndata: \n\n')
    body.write(
      'event: message\nid: b\ndata: {"jsonrpc":"2.0","method":"n"}\n\nevent: other\ndata: {"x":1}\n\n',
    )
    expect(sink.messages).toEqual([{ jsonrpc: '2.0', method: 'n' }])
    expect(sink.marks).toEqual([{ retry: 9 }, { id: 'a', retry: 10 }, { id: 'b' }])
    expect(sink.ended).toBe(false)
    body.write(`data: ${JSON.stringify(result(1))}\n\n`)
    body.end()
    expect(sink.messages).toHaveLength(2)
    expect(sink.ended).toBe(true)
  })

  it('accepts an event stream whose media type is in other case', async () => {
    const body = stream()
    const { session } = await begun(events(body, { 'content-type': 'Text/Event-Stream; Charset=UTF-8' }))
    const sink = collect()
    session.request(request(1, 'tools/call'), fixtureContext(), sink)
    await settle()
    body.write(`data: ${JSON.stringify(result(1))}\n\n`)
    body.end()
    expect(sink.messages).toEqual([result(1)])
    expect(sink.ended).toBe(true)
  })

  it('stops the stream while the sink is full', async () => {
    const body = stream()
    const { session } = await begun(events(body))
    session.request(request(1, 'x'), fixtureContext(), { ...collect(), message: () => false })
    await settle()
    expect(body.write('data: {"jsonrpc":"2.0","method":"n"}\n\n')).toBe(false)
    expect(body.write(':\n\n')).toBe(true)
  })

  it('cancels the stream after a disconnect', async () => {
    const body = stream()
    const { session } = await begun(events(body))
    const sink = collect()
    const flow = session.request(request(1, 'x'), fixtureContext(), sink)
    await settle()
    flow.cancel()
    expect(body.cancelled).toBe(true)
    body.write('data: {"jsonrpc":"2.0","method":"n"}\n\n')
    body.end()
    expect(sink).toMatchObject({ messages: [], ended: false })
  })

  it('cancels the request whose answer has not begun, and no other of the same client', async () => {
    const { session, sent } = await begun(events(stream()), json(result(2)))
    const client = fixtureContext()
    session.request(request(1, 'x'), client, collect()).cancel()
    session.request(request(2, 'x'), client, collect())
    expect(sent.map(({ cancellation }) => cancellation?.cancelled)).toEqual([true, false])
    expect(client.cancellation.cancelled).toBe(false)
  })

  it('cancels a response that arrives after a disconnect', async () => {
    const body = stream()
    const { session } = await begun(events(body))
    session.request(request(1, 'x'), fixtureContext(), collect()).cancel()
    await settle()
    expect(body.cancelled).toBe(true)
  })

  it.each([202, 204])('ends without a response for status %i', async (status) => {
    const { session } = await begun({ status, headers: {}, body: undefined })
    const sink = collect()
    session.request(request(1, 'x'), fixtureContext(), sink)
    await settle()
    expect(sink).toMatchObject({ messages: [], ended: true })
  })

  it('fails with the status and body the server refused with', async () => {
    const headers = { 'content-type': 'application/json', 'www-authenticate': 'Bearer', 'set-cookie': 'a=b' }
    const { session } = await begun({ status: 401, headers, body: Buffer.from('{"no":1}') })
    const sink = collect()
    session.request(request(1, 'x'), fixtureContext(), sink)
    await settle()
    expect(sink.failure).toMatchObject({
      kind: 'reply',
      reply: { status: 401, headers: { 'content-type': 'application/json', 'www-authenticate': 'Bearer' } },
    })
    expect(sink.failure).not.toHaveProperty('reply.headers.set-cookie')
  })

  it('takes 404 for the end of a session it has, and for a refusal before', async () => {
    const gone: Reply = { status: 404, headers: {}, body: undefined }
    const { session } = await begun(gone)
    const sink = collect()
    session.request(request(1, 'x'), fixtureContext(), sink)
    await settle()
    expect(sink.failure).toMatchObject({ kind: 'ended' })
    const before = collect()
    fixture(gone).target.open().request(request(0, 'initialize'), fixtureContext(), before)
    await settle()
    expect(before.failure).toMatchObject({ kind: 'reply', reply: { status: 404 } })
  })

  it.each([
    ['garbage', { status: 200, headers: {}, body: Buffer.from('<html>') }],
    ['an array', { status: 200, headers: {}, body: Buffer.from('[]') }],
    ['nothing', { status: 200, headers: {}, body: undefined }],
    ['a redirect', { status: 307, headers: { location: 'http://elsewhere.test/' }, body: undefined }],
    [
      'an encoding nobody asked for',
      { status: 200, headers: { 'content-encoding': 'gzip' }, body: undefined },
    ],
    ['an odd success', { status: 206, headers: {}, body: undefined }],
  ])('fails when the server answers %s', async (_, reply) => {
    const { session } = await begun(reply)
    const sink = collect()
    session.request(request(1, 'x'), fixtureContext(), sink)
    await settle()
    expect(sink.failure).toMatchObject({ kind: 'error', error: { code: 'upstream_invalid' } })
    expect(sink.messages).toEqual([])
  })

  it('fails, once, when a stream brings garbage, and leaves it', async () => {
    const body = stream()
    const { session } = await begun(events(body))
    const sink = collect()
    session.request(request(1, 'x'), fixtureContext(), sink)
    await settle()
    body.write(
      'data: {"jsonrpc":"2.0","method":"n"}\n\ndata: nonsense\n\ndata: {"jsonrpc":"2.0","method":"n"}\n\n',
    )
    expect(sink.failure).toMatchObject({ kind: 'error', error: { code: 'upstream_invalid' } })
    expect(sink.messages).toHaveLength(1)
    expect(body.cancelled).toBe(true)
  })

  it('fails when the connection does, before and during the answer', async () => {
    const refused = new GatewayError('upstream_connect', 'no')
    const body = stream()
    const { session } = await begun(refused, events(body))
    const [before, during] = [collect(), collect()]
    session.request(request(1, 'x'), fixtureContext(), before)
    await settle()
    expect(before.failure).toMatchObject({
      kind: 'error',
      error: { code: 'upstream_connect', message: 'target "up": no', cause: refused },
    })
    session.request(request(2, 'x'), fixtureContext(), during)
    await settle()
    const reset = new GatewayError('upstream_reset', 'gone')
    body.fail(reset)
    expect(during.failure).toMatchObject({
      kind: 'error',
      error: { code: 'upstream_reset', message: 'target "up": gone', cause: reset },
    })
  })
})

describe('a session at a server over HTTP', () => {
  it('can be gone on with by another process, at the same server only', async () => {
    const { session } = await begun()
    const state = session.state() ?? {}
    const { target, sent } = fixture(json(result(1)))
    target.resume(state)?.request(request(1, 'x'), fixtureContext(), collect())
    await settle()
    expect(sent[0]?.headers).toMatchObject({ 'mcp-session-id': 'up-1', 'mcp-protocol-version': '2025-06-18' })
    const other = compileStreamableHttp(
      'up',
      { host: 'http://other.test/mcp' },
      { send: () => Promise.reject() },
    )
    expect(other.resume(state)).toBeUndefined()
    expect(target.resume({})).toBeUndefined()
  })

  it('learns its id and revision also from a stream', async () => {
    const body = stream()
    const { target, sent } = fixture(events(body, { 'mcp-session-id': 'up-2' }), json(result(1)))
    const session = target.open()
    session.request(request(0, 'initialize'), fixtureContext({ protocolVersion: '2024-11-05' }), collect())
    await settle()
    body.write(`data: ${JSON.stringify(introduced('2025-11-25'))}\n\n`)
    session.request(request(1, 'x'), fixtureContext(), collect())
    await settle()
    expect(sent[1]?.headers).toMatchObject({ 'mcp-session-id': 'up-2', 'mcp-protocol-version': '2025-11-25' })
  })

  it('does not believe a revision that another message names', async () => {
    const { target } = fixture(json(introduced('2025-11-25', 5)))
    const session = target.open()
    session.request(request(0, 'initialize'), fixtureContext(), collect())
    await settle()
    expect(session.state()).not.toHaveProperty('v')
  })

  it('is ended by DELETE, once, and not where there was none', async () => {
    const { session, sent } = await begun({ status: 200, headers: {}, body: undefined })
    await session.close()
    await session.close()
    expect(sent).toHaveLength(1)
    expect(sent[0]).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 'up-1' } })
    const never = fixture()
    await never.target.open().close()
    expect(never.sent).toEqual([])
  })

  it('ends also when the server does not want to hear of it', async () => {
    const { session } = await begun(new GatewayError('upstream_connect', 'no'))
    await expect(session.close()).resolves.toBeUndefined()
  })
})

describe('a notification to a server over HTTP', () => {
  const notification = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })

  it('is taken with any success', async () => {
    const { session, sent } = await begun(
      { status: 202, headers: {}, body: undefined },
      { status: 200, headers: {}, body: Buffer.from('ok') },
    )
    expect(await session.deliver(notification, fixtureContext())).toBeUndefined()
    expect(await session.deliver(notification, fixtureContext())).toBeUndefined()
    expect(sent[0]).toMatchObject({ method: 'POST', body: notification.text })
  })

  it('fails with the error response of the server', async () => {
    const { session } = await begun(
      { status: 404, headers: {}, body: undefined },
      { status: 400, headers: {}, body: Buffer.from('no') },
      new GatewayError('upstream_timeout', 'slow'),
    )
    expect(await session.deliver(notification, fixtureContext())).toMatchObject({ kind: 'ended' })
    expect(await session.deliver(notification, fixtureContext())).toMatchObject({ kind: 'reply' })
    expect(await session.deliver(notification, fixtureContext())).toMatchObject({ kind: 'error' })
  })
})

describe('a session that begins only after it was given up', () => {
  it('is ended at the server', async () => {
    const late = Promise.withResolvers<Reply>()
    const sent: OutgoingRequest[] = []
    const send = (outgoing: OutgoingRequest) => {
      sent.push(outgoing)
      return outgoing.method === 'POST' ? late.promise : Promise.resolve(json({}))
    }
    const session = compileStreamableHttp('up', { host: 'http://up.test:81/mcp' }, { send }).open()
    session.request(request(0, 'initialize'), fixtureContext(), collect()).cancel()
    await session.close()
    late.resolve(json(introduced(), { 'mcp-session-id': 'up-1' }))
    await settle()
    expect(sent.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 'up-1' } })
  })
})

describe('the stream of a server over HTTP', () => {
  it.each(['a\r\nx-other: 1', '\u010a', '\0'])(
    'asks without an event id that fits no header: %j',
    async (id) => {
      const { session, sent } = await begun(events(stream()))
      const listening = await session.listen(fixtureContext({ lastEventId: id }), collect())
      expect(listening.kind).toBe('flow')
      expect(sent.at(-1)?.headers).not.toHaveProperty('last-event-id')
    },
  )

  it('goes on behind the last event', async () => {
    const body = stream()
    const { session, sent } = await begun(events(body))
    const sink = collect()
    const listening = await session.listen(fixtureContext({ lastEventId: '7' }), sink)
    expect(listening.kind).toBe('flow')
    expect(sent[0]).toMatchObject({
      method: 'GET',
      headers: { accept: 'text/event-stream', 'last-event-id': '7', 'mcp-session-id': 'up-1' },
    })
    body.write('id: 8\ndata: {"jsonrpc":"2.0","method":"n"}\n\n')
    expect(sink.messages).toHaveLength(1)
    body.end()
    expect(sink.ended).toBe(true)
  })

  it('is absent for status 405', async () => {
    const { session } = await begun({ status: 405, headers: {}, body: undefined })
    expect(await session.listen(fixtureContext(), collect())).toEqual({ kind: 'none' })
  })

  it.each([
    [404, 'ended', undefined],
    [500, 'reply', Buffer.from('no')],
    [200, 'error', stream()],
  ])('fails with status %i', async (status, kind, body) => {
    const { session } = await begun({ status, headers: { 'content-type': 'text/html' }, body })
    const listening = await session.listen(fixtureContext(), collect())
    expect(listening).toMatchObject({ kind: 'failed', failure: { kind } })
  })
})
