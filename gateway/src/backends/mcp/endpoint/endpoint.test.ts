import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  type FakeTarget,
  type FakeTargetOptions,
  fakeTarget,
  fixturePlaces,
  introduction,
  mcpExchange,
  messagesIn,
  read,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { textOf } from '../../../../test/fixtures/pipeline.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import { systemClock } from '../../../lib/clock.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { createWorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { federate } from '../federation/federation.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { MessageSink } from '../message/message.ts'
import { createOpenStreams } from '../sessions/open-streams.ts'
import { createSessionIds } from '../sessions/session-id.ts'
import { createSessions, type Sessions } from '../sessions/sessions.ts'
import type { McpRules } from './call-context.ts'
import { createEndpoint } from './endpoint.ts'
import type { EndpointOptions } from './request-body.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const call = (id: number, name = 'echo') => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })

type Options = Pick<EndpointOptions, 'streams'> & {
  targets?: FakeTarget[]
  stateless?: boolean
  rules?: McpRules
  maxBodyBytes?: number
}

/** The client of requests without authentication. */
const nobody = { owner: '', quotaKey: '' }
const clock = { now: () => 1_000, monotonic: () => 1_000 }

function createStore(places = fixturePlaces()): Sessions {
  const ids = createSessionIds(Buffer.alloc(32, 3), 'mcp')
  return createSessions({ clock, ids, sharedKey: true, ttlMs: 1_000, slots: places, maxEndedIds: 10 })
}

function fixture(options: Options = {}) {
  const targets = options.targets ?? [target()]
  const sessions = createStore()
  const federation = federate(targets, {
    prefixMode: 'conditional',
    failOpen: false,
    version: '1',
    initializeTimeoutMs: 5_000,
  })
  if (federation === undefined) throw new Error('no targets')
  const { stateless = false, rules, streams, maxBodyBytes = 10_000 } = options
  const create = (store: Sessions): Backend =>
    createEndpoint({
      federation,
      sessions: store,
      streams,
      clock,
      stateless,
      rules,
      maxBodyBytes,
      workQueue: createWorkQueue(systemClock),
      version: '1',
    })
  const backend = create(sessions)
  return {
    backend,
    create,
    sessions,
    target: targets[0] ?? target(),
    /** Starts a session and returns the headers of its requests. */
    async begin(facts = {}) {
      const reply = await backend(mcpExchange('POST', { body: initialize, facts }))
      return { 'mcp-session-id': String(reply.headers['mcp-session-id']) }
    },
  }
}

function target(options: FakeTargetOptions = {}): FakeTarget {
  const behaviours = { 'tools/call': () => ({ content: [] }), ...options.behaviours }
  return fakeTarget('a', { ...options, behaviours })
}

const errorIn = (reply: Reply): JsonObject => JSON.parse(textOf(reply))

describe('a POST', () => {
  const post = (headers: Record<string, string>, body: JsonObject | string = call(1)) =>
    fixture().backend(mcpExchange('POST', { headers, body }))

  it.each([
    ['application/json', 406],
    ['text/event-stream', 406],
    ['', 406],
    ['text/html, */*;q=0.1', 400],
    ['application/*, text/*', 400],
    ['text/event-stream;q=0.9,application/json', 400],
  ])('must accept both kinds of answers: %j', async (accept, status) => {
    expect((await post({ accept })).status).toBe(status)
  })

  it.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/json; charset=utf-7', 415],
    ['application/json-patch', 415],
    ['Application/JSON; charset=utf-8', 400],
  ])('must be JSON: %s', async (type, status) => {
    expect((await post({ 'content-type': type })).status).toBe(status)
  })

  it('must not be compressed', async () => {
    expect((await post({ 'content-encoding': 'gzip' })).status).toBe(415)
  })

  it.each([
    ['[]', -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
    ['{', -32700],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}', -32600],
  ])('must be one JSON-RPC message: %s', async (body, code) => {
    const reply = await post({}, body)
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({ jsonrpc: '2.0', error: { code } })
  })

  it('must not be larger than allowed', async () => {
    const { backend } = fixture({ maxBodyBytes: 10 })
    await expect(backend(mcpExchange('POST', { body: call(1) }))).rejects.toMatchObject({
      code: 'request_too_large',
    })
  })

  it('must be of a known revision', async () => {
    const reply = await post({ 'mcp-protocol-version': '2023-01-01' })
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({
      id: 1,
      error: {
        code: -32022,
        data: { requested: '2023-01-01', supported: expect.arrayContaining(['2025-11-25']) },
      },
    })
  })

  it('is refused before its body is read where it names no session of its client', async () => {
    const { backend, begin } = fixture()
    const facts = { jwt: { iss: 'i', sub: 'alice' } }
    const headers = await begin(facts)
    const start = vi.fn()
    const send = (id: string, sub: string) => {
      const exchange = mcpExchange('POST', {
        headers: { 'content-type': 'application/json', 'mcp-session-id': id },
        facts: { jwt: { iss: 'i', sub } },
      })
      return backend({ ...exchange, body: { start, resume() {}, cancel() {} } })
    }
    expect((await send(headers['mcp-session-id'], 'mallory')).status).toBe(404)
    expect((await send('unknown', 'alice')).status).toBe(404)
    expect(start).not.toHaveBeenCalled()
  })

  it('without a session must be small, because it only begins one', async () => {
    const { backend } = fixture({ maxBodyBytes: 10_000_000 })
    const params = { ...initialize.params, padding: 'x'.repeat(64 * 1024) }
    await expect(backend(mcpExchange('POST', { body: { ...initialize, params } }))).rejects.toMatchObject({
      code: 'request_too_large',
    })
  })

  it('must belong to a session', async () => {
    const reply = await post({})
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({ id: 1, error: { code: -32000 } })
  })

  it.each(['made-up', '', '../../x', 'a'.repeat(5_000)])(
    'must not name a session that is none: %j',
    async (id) => {
      const reply = await post({ 'mcp-session-id': id })
      expect(reply.status).toBe(404)
      expect(errorIn(reply)).toMatchObject({ id: null, error: { code: -32001 } })
    },
  )
})

describe('a session', () => {
  it('begins with initialize and goes on by its id', async () => {
    const { backend, begin } = fixture()
    const headers = await begin()
    const reply = await backend(mcpExchange('POST', { headers, body: call(7) }))
    expect(reply).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    expect(messagesIn(read(reply))).toEqual([{ jsonrpc: '2.0', id: 7, result: { content: [] } }])
  })

  it('does not begin when the target refuses', async () => {
    const behaviours = { initialize: () => ({ error: { code: -32602, message: 'no' } }) }
    const { backend, target: own, sessions } = fixture({ targets: [target({ behaviours })] })
    const reply = await backend(mcpExchange('POST', { body: initialize }))
    expect(reply.headers).not.toHaveProperty('mcp-session-id')
    expect(messagesIn(read(reply))).toMatchObject([{ error: { code: -32602 } }])
    expect(sessions.size).toBe(0)
    expect(own.sessions[0]?.closed).toBe(1)
  })

  it.each([
    [{ complete: false, status: 200 }, 404],
    [{ complete: true, status: 500 }, 404],
    [{ complete: true, status: 200 }, 200],
  ])('ends unless the answer with its id was delivered: %j', async (delivery, status) => {
    const { backend, target: own } = fixture()
    const exchange = mcpExchange('POST', { body: initialize })
    const reply = await backend(exchange)
    exchange.mcp?.onDelivered?.({ ...delivery, bytesSent: 0, firstByteAt: undefined })
    expect(own.sessions[0]?.closed).toBe(status === 404 ? 1 : 0)
    const headers = { 'mcp-session-id': String(reply.headers['mcp-session-id']) }
    expect((await backend(mcpExchange('POST', { headers, body: call(1) }))).status).toBe(status)
  })

  it('that ended is refused with the reason, and only to its client', async () => {
    const pinned = fakeTarget('a', { pinned: true })
    const { backend, begin } = fixture({ targets: [pinned] })
    const facts = { jwt: { iss: 'i', sub: 'alice' } }
    const headers = await begin(facts)
    pinned.sessions[0]?.die('target "a" ended: exit code 3')
    const ask = async (sub: string) =>
      textOf(
        await backend(mcpExchange('POST', { headers, body: call(1), facts: { jwt: { iss: 'i', sub } } })),
      )
    expect(await ask('alice')).toContain('Session not found: target \\"a\\" ended: exit code 3')
    expect(await ask('mallory')).toMatch(/"Session not found"/)
    const stream = await backend(mcpExchange('GET', { headers, facts }))
    expect([stream.status, textOf(stream)]).toEqual([
      404,
      'mcp: Session not found: target "a" ended: exit code 3',
    ])
  })

  it('does not begin twice', async () => {
    const { backend, begin } = fixture()
    const headers = await begin()
    const reply = await backend(mcpExchange('POST', { headers, body: initialize }))
    expect([reply.status, errorIn(reply)]).toMatchObject([200, { id: 0, error: { code: -32600 } }])
  })

  it('is left behind by a client that goes before it begins', async () => {
    const own = target({ behaviours: { initialize: () => undefined } })
    const { backend, sessions } = fixture({ targets: [own] })
    const exchange = mcpExchange('POST', { body: initialize })
    const reply = backend(exchange)
    await settle()
    exchange.cancellation.cancel()
    await reply
    expect(own.sessions[0]?.closed).toBe(1)
    expect(sessions.size).toBe(0)
  })

  it('goes on in another process', async () => {
    const { create, begin } = fixture()
    const headers = await begin()
    const reply = await create(createStore())(mcpExchange('POST', { headers, body: call(1) }))
    expect(reply.status).toBe(200)
  })

  it.each([
    ['subject', { jwt: { iss: 'i', sub: 'alice' } }, { jwt: { iss: 'i', sub: 'bob' } }],
    ['issuer', { jwt: { iss: 'i', sub: 'alice' } }, { jwt: { iss: 'j', sub: 'alice' } }],
    ['client', { jwt: { iss: 'i', client_id: 'x' } }, { jwt: { iss: 'i', client_id: 'y' } }],
    ['key', { apiKey: { id: '1' } }, { apiKey: { id: '2' } }],
    ['token at all', { jwt: { iss: 'i', sub: 'alice' } }, {}],
    ['name for nobody', {}, { jwt: { iss: 'i', sub: 'alice' } }],
  ])('is not for another %s', async (_, owner, other) => {
    const { backend, begin } = fixture()
    const headers = await begin(owner)
    for (const method of ['POST', 'GET', 'DELETE']) {
      const body = method === 'POST' ? { body: call(1) } : {}
      expect((await backend(mcpExchange(method, { headers, facts: other, ...body }))).status).toBe(404)
    }
    expect((await backend(mcpExchange('POST', { headers, facts: owner, body: call(1) }))).status).toBe(200)
  })

  it('is over after DELETE', async () => {
    const { backend, begin, target: own } = fixture()
    const headers = await begin()
    expect((await backend(mcpExchange('DELETE', { headers }))).status).toBe(204)
    expect(own.sessions[0]?.closed).toBe(1)
    expect((await backend(mcpExchange('POST', { headers, body: call(1) }))).status).toBe(404)
    expect((await backend(mcpExchange('DELETE', { headers }))).status).toBe(404)
  })

  it('ends when its target ends it', async () => {
    const own = target({ behaviours: { 'tools/call': () => ({ kind: 'ended', reason: 'exit code 1' }) } })
    const { backend, begin } = fixture({ targets: [own] })
    const headers = await begin()
    const reply = await backend(mcpExchange('POST', { headers, body: call(1) }))
    expect(reply.status).toBe(404)
    expect(textOf(reply)).toContain('exit code 1')
    expect((await backend(mcpExchange('POST', { headers, body: call(2) }))).status).toBe(404)
    expect(own.sessions[0]?.closed).toBe(1)
  })

  it('responds to pending requests at its end', async () => {
    const own = target({ behaviours: { 'tools/call': () => undefined } })
    const { backend, begin } = fixture({ targets: [own] })
    const headers = await begin()
    const reply = backend(mcpExchange('POST', { headers, body: call(1) }))
    await settle()
    await backend(mcpExchange('DELETE', { headers }))
    expect((await reply).status).toBe(404)
  })
})

describe('an endpoint that takes over from another', () => {
  it('ends the sessions of targets that are gone with its first request', async () => {
    const [old, kept] = [fakeTarget('a', { pinned: true }), target({ pinned: true })]
    const before = fixture({ targets: [old] })
    await before.begin()
    const federation = federate([kept], {
      prefixMode: 'conditional',
      failOpen: false,
      version: '1',
      initializeTimeoutMs: 5_000,
    })
    if (federation === undefined) throw new Error('no targets')
    const after = createEndpoint({
      federation,
      sessions: before.sessions,
      clock,
      stateless: false,
      rules: undefined,
      maxBodyBytes: 10_000,
      workQueue: createWorkQueue(systemClock),
      version: '1',
    })
    expect(old.sessions[0]?.closed).toBe(0)
    await after(mcpExchange('POST', { body: initialize }))
    expect(old.sessions[0]?.closed).toBe(1)
    expect(kept.sessions[0]?.closed).toBe(0)
  })
})

describe('a session of the legacy transport', () => {
  it('is none for the other transport', async () => {
    const { backend } = fixture()
    const stream = read(await backend(mcpExchange('GET', { path: '/sse' })))
    const id = stream.events[0]?.data.replace('/sse?sessionId=', '') ?? ''
    expect(id.length).toBeGreaterThan(36)
    const headers = { 'mcp-session-id': id }
    expect((await backend(mcpExchange('POST', { headers, body: call(1) }))).status).toBe(404)
    expect((await backend(mcpExchange('DELETE', { headers }))).status).toBe(404)
    expect(stream.ended).toBe(false)
  })
})

describe('content of client messages', () => {
  it('reaches the target without the client’s credentials to the gateway’s own session', async () => {
    const { backend, begin, target: own } = fixture()
    const headers = {
      ...(await begin()),
      'x-team': 'a',
      cookie: 'c',
      origin: 'http://x',
      'mcp-name': 'other',
      'x-http-method-override': 'DELETE',
      'x-original-url': '/admin',
      'x-client-ip': '127.0.0.1',
    }
    await backend(mcpExchange('POST', { headers, body: call(1) }))
    expect(own.sessions[0]?.contexts.at(-1)?.headers).toEqual({ 'x-team': 'a' })
  })

  it('is accepted without an answer where none belongs to it', async () => {
    const { backend, begin, target: own } = fixture()
    const headers = await begin()
    for (const body of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 's1', result: {} },
    ]) {
      expect(await backend(mcpExchange('POST', { headers, body }))).toEqual({
        status: 202,
        headers: {},
        body: undefined,
      })
      expect(own.sessions[0]?.delivered).toContainEqual(body)
    }
  })

  it('is accepted, with a refusal of the target in the log only', async () => {
    const { backend, begin, target: own } = fixture()
    const headers = await begin()
    own.refusals['notifications/x'] = {
      kind: 'reply',
      reply: { status: 418, headers: {}, body: Buffer.from('tea') },
    }
    const exchange = mcpExchange('POST', { headers, body: { jsonrpc: '2.0', method: 'notifications/x' } })
    expect(await backend(exchange)).toEqual({ status: 202, headers: {}, body: undefined })
    expect(exchange.log.refusedBy).toBe('mcp: target')
  })

  it('is refused with the challenge of a target', async () => {
    const { backend, begin, target: own } = fixture()
    const headers = await begin()
    const challenge: Reply = { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: undefined }
    own.refusals['notifications/x'] = { kind: 'reply', reply: challenge }
    const exchange = mcpExchange('POST', { headers, body: { jsonrpc: '2.0', method: 'notifications/x' } })
    expect(await backend(exchange)).toBe(challenge)
  })
})

describe('a batch', () => {
  const old = (name = 'a') =>
    target({ behaviours: { initialize: () => ({ ...introduction(name), protocolVersion: '2025-03-26' }) } })
  const batchOf = async (body: unknown, options: Options = {}, facts = {}) => {
    const all = fixture({ targets: [old()], ...options })
    const headers = await all.begin(facts)
    const exchange = mcpExchange('POST', { headers, body: JSON.stringify(body), facts })
    return { ...all, headers, exchange, send: () => all.backend(exchange) }
  }
  const ping = { jsonrpc: '2.0', method: 'notifications/x' }

  it('is answered with the response to each of its requests, where its revision was agreed to', async () => {
    const { send, target: own, exchange, sessions, headers } = await batchOf([call(1), ping, call(2, 'b')])
    const reply = read(await send())
    expect(messagesIn(reply)).toEqual([
      { jsonrpc: '2.0', id: 1, result: { content: [] } },
      { jsonrpc: '2.0', id: 2, result: { content: [] } },
    ])
    expect(reply.ended).toBe(true)
    expect(own.sessions[0]?.delivered).toEqual([ping])
    expect(exchange.mcp?.call).toMatchObject({
      method: 'batch',
      item: 'tools/call echo, notifications/x, tools/call b',
    })
    const session = sessions.find(headers['mcp-session-id'], { target: own, members: [own] }, nobody)
    expect(session?.uses).toEqual([])
  })

  it('goes on being accepted by another process', async () => {
    const { create, headers } = await batchOf([])
    const elsewhere = create(createStore())
    const reply = await elsewhere(mcpExchange('POST', { headers, body: JSON.stringify([call(1)]) }))
    expect(messagesIn(read(reply))).toMatchObject([{ id: 1, result: {} }])
  })

  it('without requests is accepted', async () => {
    const { send } = await batchOf([ping, ping])
    expect((await send()).status).toBe(202)
  })

  it.each([
    ['nothing', []],
    ['too much', Array.from({ length: 51 }, (_, id) => call(id))],
    ['one message that is malformed', [call(1), { jsonrpc: '2.0', id: 2 }]],
    ['a batch', [[call(1)]]],
    ['one id twice', [call(1), call(1, 'b')]],
    ['initialize', [initialize]],
    [
      'a message of a revision without sessions',
      [{ ...call(1), params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } } }],
    ],
  ])('of %s is refused as a whole', async (_, body) => {
    const { send, target: own } = await batchOf(body)
    const reply = await send()
    expect([reply.status, errorIn(reply)]).toMatchObject([400, { error: { code: expect.any(Number) } }])
    expect(own.sessions[0]?.requests).toHaveLength(1)
  })

  it.each([
    ['a key that occurs twice', '[{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}]'],
    ['more behind it', '[{"jsonrpc":"2.0","id":1,"method":"ping"}],"x":[1]'],
    ['another one behind it', '[],"batch":[{"jsonrpc":"2.0","id":1,"method":"ping"}]'],
    ['no end', '[{"jsonrpc":"2.0","id":1,"method":"ping"}'],
  ])('with %s is refused', async (_, body) => {
    const { backend, begin } = fixture({ targets: [old()] })
    const reply = await backend(mcpExchange('POST', { headers: await begin(), body }))
    expect(reply.status).toBe(400)
  })

  it('is refused in sessions of other revisions', async () => {
    const { send } = await batchOf([call(1)], { targets: [target()] })
    expect((await send()).status).toBe(400)
  })

  it('applies the rules to each request', async () => {
    const rules: McpRules = {
      permits: (_, { name }) => name === 'echo',
      permitsMethod: (_, method) => method === 'initialize',
    }
    const { send, target: own } = await batchOf([call(1), call(2, 'other')], { rules })
    expect(messagesIn(read(await send()))).toEqual([
      { jsonrpc: '2.0', id: 1, result: { content: [] } },
      { jsonrpc: '2.0', id: 2, error: { code: -32602, message: 'Unknown tool: other' } },
    ])
    expect(own.sessions[0]?.requests).toHaveLength(2)
  })

  it('must have one request where requests are limited', async () => {
    const limits = {
      requests: undefined,
      tokens: undefined,
      refused: undefined,
      headersSent: false,
      reservations: [],
    }
    const { id: _, ...callWithoutId } = call(3)
    for (const [messages, status] of [
      [[call(1)], 200],
      [[call(1), call(2)], 400],
      [[call(1), callWithoutId], 400],
      [[callWithoutId, callWithoutId], 400],
    ] as const) {
      const { exchange, send } = await batchOf(messages)
      exchange.limits = limits
      expect((await send()).status).toBe(status)
    }
  })

  it('answers the requests that are left when its session ends', async () => {
    const hanging = target({
      behaviours: {
        initialize: () => ({ ...introduction('a'), protocolVersion: '2025-03-26' }),
        'tools/call': ({ name }) => (name === 'hangs' ? undefined : { content: [] }),
      },
    })
    const { send, backend, headers } = await batchOf([call(1), call(2, 'hangs')], { targets: [hanging] })
    const reply = read(await send())
    expect(reply.ended).toBe(false)
    await backend(mcpExchange('DELETE', { headers }))
    expect(messagesIn(reply)).toMatchObject([
      { id: 1, result: {} },
      { id: 2, error: { code: -32001 } },
    ])
    expect(reply.ended).toBe(true)
  })
})

describe('an answer to initialize', () => {
  const answer = messageOf({ jsonrpc: '2.0', id: 0, result: introduction('a') })

  it('begins one session, however often it comes', async () => {
    const twice = target({
      behaviours: {
        initialize(_, sink) {
          sink.message(answer)
          sink.message(answer)
          return undefined
        },
      },
    })
    const { begin, sessions } = fixture({ targets: [twice] })
    await begin()
    expect(sessions.size).toBe(1)
  })

  it('begins no session after the client has left', async () => {
    const late = target({ behaviours: { initialize: () => undefined } })
    const { backend, sessions } = fixture({ targets: [late] })
    const cancellation = createCancellation()
    const replied = backend({ ...mcpExchange('POST', { body: initialize }), cancellation })
    await settle()
    cancellation.cancel()
    await replied
    late.sessions[0]?.sinks[0]?.message(answer)
    expect(sessions.size).toBe(0)
  })
})

describe('failures of a target', () => {
  it.each(['upstream_connect', 'upstream_timeout', 'upstream_invalid', 'internal'] as const)(
    '%s in a session is answered with a JSON-RPC error and status 200',
    async (code) => {
      const error = new GatewayError(code, 'what happened')
      const { backend, begin } = fixture({
        targets: [target({ behaviours: { 'tools/call': () => ({ kind: 'error', error }) } })],
      })
      const exchange = mcpExchange('POST', { headers: await begin(), body: call(3) })
      const reply = await backend(exchange)
      expect(reply.status).toBe(200)
      expect(errorIn(reply)).toEqual({
        jsonrpc: '2.0',
        id: 3,
        error: { code: -32603, message: 'what happened' },
      })
      expect(exchange.log.failure).toBe(error)
    },
  )

  it('that are defects end the request, and leave its session free', async () => {
    const defective = (): never => {
      throw new Error('defect')
    }
    const own = target({ behaviours: { 'tools/call': defective } })
    const { backend, begin, sessions } = fixture({ targets: [own] })
    const headers = await begin()
    const reply = await backend(mcpExchange('POST', { headers, body: call(3) }))
    expect(reply.status).toBe(200)
    expect(errorIn(reply)).toMatchObject({ id: 3, error: { code: -32603, message: 'internal error' } })
    Object.defineProperty(own, 'listening', { get: defective })
    expect((await backend(mcpExchange('GET', { headers }))).status).toBe(500)
    const session = sessions.find(headers['mcp-session-id'], { target: own, members: [own] }, nobody)
    expect(session?.uses.length).toBe(0)
  })

  it('that refuse over HTTP are a JSON-RPC error with their status and text', async () => {
    const refused: Reply = { status: 500, headers: {}, body: Buffer.from('internal trouble') }
    const own = target({ behaviours: { 'tools/call': () => ({ kind: 'reply', reply: refused }) } })
    const { backend, begin } = fixture({ targets: [own] })
    const reply = await backend(mcpExchange('POST', { headers: await begin(), body: call(3) }))
    expect(reply.status).toBe(200)
    expect(errorIn(reply)).toEqual({
      jsonrpc: '2.0',
      id: 3,
      error: {
        code: -32603,
        message: 'the target answered with status 500',
        data: { status: 500, body: 'internal trouble' },
      },
    })
  })

  it('that refuse over HTTP with a JSON-RPC error are answered with that error', async () => {
    const text =
      '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no such tool","data":{"n":9007199254740993}}}'
    const body = Buffer.from(text)
    const refused: Reply = { status: 400, headers: { 'content-type': 'application/json' }, body }
    const own = target({ behaviours: { 'tools/call': () => ({ kind: 'reply', reply: refused }) } })
    const { backend, begin } = fixture({ targets: [own] })
    const reply = await backend(mcpExchange('POST', { headers: await begin(), body: call(3) }))
    expect([reply.status, textOf(reply)]).toEqual([200, text])
  })

  it('that demand credentials are passed on', async () => {
    const refused: Reply = { status: 401, headers: { 'www-authenticate': 'Bearer' }, body: Buffer.from('x') }
    const own = target({ behaviours: { 'tools/call': () => ({ kind: 'reply', reply: refused }) } })
    const { backend, begin } = fixture({ targets: [own] })
    expect(await backend(mcpExchange('POST', { headers: await begin(), body: call(3) }))).toBe(refused)
  })
})

describe('rules', () => {
  const rules: McpRules = {
    permits: (exchange, { name, target: from }) => from === 'a' && exchange.facts.jwt?.['role'] === name,
    permitsMethod: (_, method) => method === 'initialize',
  }

  it('apply with the token of each request, and hide denied items', async () => {
    const { backend, begin } = fixture({ targets: [target(), fakeTarget('b')], rules })
    const headers = await begin({ jwt: { sub: 'x', role: 'echo' } })
    const post = (role: string, name: string) =>
      backend(mcpExchange('POST', { headers, body: call(1, name), facts: { jwt: { sub: 'x', role } } }))
    expect((await post('echo', 'a_echo')).status).toBe(200)
    const refused = await post('other', 'a_echo')
    expect(refused.status).toBe(200)
    expect(errorIn(refused)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32602, message: 'Unknown tool: a_echo' },
    })
    expect(textOf(await post('echo', 'c_echo'))).toContain('Unknown tool: c_echo')
  })
})

describe('a GET', () => {
  it('cancels a stream that stands only after the session has ended', async () => {
    const opening = Promise.withResolvers<void>()
    const cancel = vi.fn()
    const own = target()
    const { open } = own
    own.open = () => ({
      ...open(),
      listen: () => opening.promise.then(() => ({ kind: 'flow', flow: { resume() {}, cancel } })),
    })
    const { backend, begin } = fixture({ targets: [own] })
    const headers = await begin()
    const reply = backend(mcpExchange('GET', { headers }))
    await settle()
    await backend(mcpExchange('DELETE', { headers }))
    opening.resolve()
    await reply
    await settle()
    expect(cancel).toHaveBeenCalledOnce()
  })

  it('is an immediately open stream of messages outside requests', async () => {
    const { backend, begin, target: own } = fixture()
    const reply = await backend(mcpExchange('GET', { headers: await begin() }))
    expect(reply).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } })
    const stream = read(reply)
    own.sessions[0]?.streams[0]?.sink.message(messageOf({ jsonrpc: '2.0', method: 'n' }), { id: '4' })
    expect(stream.events).toEqual([{ event: 'message', data: '{"jsonrpc":"2.0","method":"n"}', id: '4' }])
  })

  it('goes on behind the last event', async () => {
    const { backend, begin, target: own } = fixture()
    await backend(mcpExchange('GET', { headers: { ...(await begin()), 'last-event-id': '9' } }))
    expect(own.sessions[0]?.streams[0]?.context.lastEventId).toBe('9')
  })

  it('is 405 where the target has no stream', async () => {
    const { backend, begin, target: own } = fixture()
    own.listening = 'none'
    expect((await backend(mcpExchange('GET', { headers: await begin() }))).status).toBe(405)
  })

  it('ends with the session', async () => {
    const { backend, begin } = fixture()
    const headers = await begin()
    const stream = read(await backend(mcpExchange('GET', { headers })))
    await backend(mcpExchange('DELETE', { headers }))
    expect(stream.ended).toBe(true)
  })

  it('keeps the session in use until the client leaves', async () => {
    const { backend, begin, sessions, target: own } = fixture()
    const headers = await begin()
    const exchange = mcpExchange('GET', { headers })
    await backend(exchange)
    const session = sessions.find(headers['mcp-session-id'], { target: own, members: [own] }, nobody)
    expect(session?.uses.length).toBe(1)
    exchange.cancellation.cancel()
    expect(session?.uses.length).toBe(0)
    expect(own.sessions[0]?.cancelled).toBeGreaterThan(0)
  })

  it('ends with the token it was opened with', async () => {
    vi.useFakeTimers()
    try {
      const { backend, begin } = fixture()
      const facts = { jwt: { iss: 'i', sub: 'alice', exp: 61 } }
      const stream = read(await backend(mcpExchange('GET', { headers: await begin(facts), facts })))
      vi.advanceTimersByTime(119_000)
      expect(stream.ended).toBe(false)
      vi.advanceTimersByTime(1_000)
      expect(stream.ended).toBe(true)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it.each([
    [{ accept: 'application/json' }, 406],
    [{}, 400],
    [{ 'mcp-session-id': 'x' }, 404],
    [{ 'mcp-session-id': 'x', 'mcp-protocol-version': '1999' }, 400],
    [{ 'mcp-protocol-version': '2026-07-28' }, 400],
  ])('with %j is refused', async (headers, status) => {
    expect((await fixture().backend(mcpExchange('GET', { headers }))).status).toBe(status)
  })
})

describe('other requests', () => {
  it.each(['PUT', 'PATCH', 'OPTIONS', 'HEAD'])('%s is not served', async (method) => {
    const reply = await fixture().backend(mcpExchange(method))
    expect(reply).toMatchObject({ status: 405, headers: { allow: 'GET, POST, DELETE' } })
  })

  it('for documents of authorization servers find none', async () => {
    const path = '/.well-known/oauth-authorization-server'
    expect((await fixture().backend(mcpExchange('GET', { path }))).status).toBe(404)
  })
})

describe('stateless mode', () => {
  it('begins a session at the target for each request and closes it', async () => {
    const { backend, target: own } = fixture({ stateless: true })
    const reply = await backend(mcpExchange('POST', { body: call(5) }))
    await settle()
    expect(reply.headers).not.toHaveProperty('mcp-session-id')
    expect(messagesIn(read(reply))).toEqual([{ jsonrpc: '2.0', id: 5, result: { content: [] } }])
    expect(own.sessions).toHaveLength(1)
    expect(own.sessions[0]).toMatchObject({
      requests: [
        { method: 'initialize', params: { clientInfo: { name: 'tollgate' } } },
        { method: 'tools/call' },
      ],
      delivered: [{ method: 'notifications/initialized' }],
      closed: 1,
    })
  })

  it('introduces the client itself when it asks for that', async () => {
    const { backend, target: own } = fixture({ stateless: true })
    const reply = await backend(mcpExchange('POST', { body: initialize }))
    expect(reply.headers).not.toHaveProperty('mcp-session-id')
    expect(own.sessions[0]?.requests).toEqual([initialize])
    expect(own.sessions[0]?.closed).toBe(1)
  })

  it('asks only the target that a call names', async () => {
    const targets = [
      target(),
      fakeTarget('b', { behaviours: { initialize: () => ({ error: { code: 1, message: 'no' } }) } }),
    ]
    const { backend } = fixture({ stateless: true, targets })
    const reply = await backend(mcpExchange('POST', { body: call(1, 'a_echo') }))
    expect(messagesIn(read(reply))).toMatchObject([{ result: { content: [] } }])
    expect(targets[1]?.sessions).toEqual([])
  })

  it('fails with the target', async () => {
    const error = new GatewayError('upstream_connect', 'no')
    const own = target({ behaviours: { initialize: () => ({ kind: 'error', error }) } })
    const { backend } = fixture({ stateless: true, targets: [own] })
    const reply = await backend(mcpExchange('POST', { body: call(1) }))
    expect([reply.status, errorIn(reply)]).toMatchObject([200, { id: 1, error: { message: 'no' } }])
    expect((await backend(mcpExchange('POST', { body: initialize }))).status).toBe(503)
    await settle()
    expect(own.sessions[0]?.closed).toBe(1)
  })

  it.each(['GET', 'DELETE'])('has no %s', async (method) => {
    const { backend } = fixture({ stateless: true })
    expect(await backend(mcpExchange(method))).toMatchObject({ status: 405, headers: { allow: 'POST' } })
  })
})

describe('requests of revisions without sessions', () => {
  const version = '2026-07-28'
  const meta = { _meta: { 'io.modelcontextprotocol/protocolVersion': version } }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', ...meta } }
  const headers = { 'mcp-protocol-version': version, 'mcp-method': 'tools/call', 'mcp-name': 'echo' }
  const single = () => fixture({ targets: [target({ sessionless: true })] })

  it('go to a single target as they are, with their headers', async () => {
    const { backend, target: own } = single()
    const reply = await backend(mcpExchange('POST', { headers, body }))
    expect(messagesIn(read(reply))).toMatchObject([{ id: 1, result: {} }])
    expect(own.sessions[0]?.requests).toEqual([body])
    expect(own.sessions[0]?.contexts[0]).toMatchObject({
      protocolVersion: version,
      headers: { 'mcp-method': 'tools/call', 'mcp-name': 'echo' },
    })
  })

  it.each([
    ['another method', { ...headers, 'mcp-method': 'tools/list' }],
    ['another name', { ...headers, 'mcp-name': 'other' }],
    ['another revision than the body', { ...headers, 'mcp-protocol-version': '2026-07-28' }, '2025-11-25'],
    ['a session', { ...headers, 'mcp-session-id': 'x' }],
  ])('are refused when a header contains %s', async (_, wrong, inside = version) => {
    const params = { name: 'echo', _meta: { 'io.modelcontextprotocol/protocolVersion': inside } }
    const reply = await single().backend(mcpExchange('POST', { headers: wrong, body: { ...body, params } }))
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({ id: 1, error: { code: -32020 } })
  })

  it('are refused when a header is missing', async () => {
    const { 'mcp-name': _, ...rest } = headers
    expect((await single().backend(mcpExchange('POST', { headers: rest, body }))).status).toBe(400)
    expect((await single().backend(mcpExchange('POST', { body }))).status).toBe(400)
  })

  it('are refused when they do not name their revision themselves', async () => {
    for (const params of [{ name: 'echo' }, { name: 'echo', _meta: {} }]) {
      const reply = await single().backend(mcpExchange('POST', { headers, body: { ...body, params } }))
      expect(reply.status).toBe(400)
      expect(errorIn(reply)).toMatchObject({ id: 1, error: { code: -32602 } })
    }
  })

  it('receive the supported sessionless revisions when their revision is unknown', async () => {
    const unknown = '2999-01-01'
    const params = { name: 'echo', _meta: { 'io.modelcontextprotocol/protocolVersion': unknown } }
    const wrong = { ...headers, 'mcp-protocol-version': unknown }
    const reply = await single().backend(mcpExchange('POST', { headers: wrong, body: { ...body, params } }))
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({
      error: { code: -32022, data: { requested: unknown, supported: [version] } },
    })
  })

  it('may encode their name in base64', async () => {
    const encoded = `=?base64?${Buffer.from('grüße').toString('base64')}?=`
    const named = { ...body, params: { name: 'grüße', ...meta } }
    const reply = await single().backend(
      mcpExchange('POST', { headers: { ...headers, 'mcp-name': encoded }, body: named }),
    )
    expect(reply.status).toBe(200)
  })

  it.each(['=?BASE64?Zm9v?=', '=?base64?%%%?='])('have plain names such as %s', async (name) => {
    const named = { ...body, params: { name, ...meta } }
    const reply = await single().backend(
      mcpExchange('POST', { headers: { ...headers, 'mcp-name': name }, body: named }),
    )
    expect(reply.status).toBe(200)
  })

  it('may be notifications, of which no header is required, and no responses', async () => {
    const { backend, target: own } = single()
    const notification = { jsonrpc: '2.0', method: 'notifications/x' }
    const revision = { 'mcp-protocol-version': version }
    expect((await backend(mcpExchange('POST', { headers: revision, body: notification }))).status).toBe(202)
    const wrong = { ...revision, 'mcp-method': 'tools/call' }
    expect((await backend(mcpExchange('POST', { headers: wrong, body: notification }))).status).toBe(400)
    const response = { jsonrpc: '2.0', id: 1, result: {} }
    expect((await backend(mcpExchange('POST', { headers: revision, body: response }))).status).toBe(400)
    expect(own.sessions.flatMap(({ delivered }) => delivered)).toEqual([notification])
  })

  it('discover the versions that the gateway serves too', async () => {
    const supportedVersions = ['2027-01-01', version, '2025-11-25']
    const behaviours = { 'server/discover': () => ({ supportedVersions }) }
    const { backend } = fixture({ targets: [target({ sessionless: true, behaviours })] })
    const discover = { jsonrpc: '2.0', id: 1, method: 'server/discover', params: meta }
    const reply = await backend(
      mcpExchange('POST', {
        headers: { 'mcp-protocol-version': version, 'mcp-method': 'server/discover' },
        body: discover,
      }),
    )
    expect(messagesIn(read(reply))).toMatchObject([
      { id: 1, result: { supportedVersions: [version, '2025-11-25'] } },
    ])
  })

  describe('a subscription', () => {
    const listen = {
      jsonrpc: '2.0',
      id: 7,
      method: 'subscriptions/listen',
      params: { ...meta, notifications: {} },
    }
    const named = { 'mcp-protocol-version': version, 'mcp-method': 'subscriptions/listen' }
    const world = () => {
      const behaviours = {
        'subscriptions/listen': (_: JsonObject, sink: MessageSink) => {
          sink.message(messageOf({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged' }))
          return undefined
        },
      }
      const own = target({ sessionless: true, behaviours })
      const streams = createOpenStreams()
      const { backend } = fixture({ targets: [own], streams })
      const open = async (facts = {}) =>
        read(await backend(mcpExchange('POST', { headers: named, body: listen, facts })))
      return { own, streams, open }
    }
    const ended = { id: 7, result: { resultType: 'complete' } }

    it('ends with its credential', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        const { own, open } = world()
        const stream = await open({ jwt: { exp: clock.now() / 1_000 + 100 } })
        vi.advanceTimersByTime(159_000)
        expect([messagesIn(stream).length, stream.ended]).toEqual([1, false])
        vi.advanceTimersByTime(2_000)
        expect(messagesIn(stream)[1]).toMatchObject(ended)
        expect([stream.ended, own.sessions[0]?.cancelled, own.sessions[0]?.closed]).toEqual([true, 1, 1])
      } finally {
        vi.useRealTimers()
      }
    })

    it('ends at shutdown, and with its targets', async () => {
      const { own, streams, open } = world()
      const first = await open()
      streams.endAll()
      expect(messagesIn(first)[1]).toMatchObject(ended)
      const second = await open()
      const { target: combined } = single()
      streams.retain({ target: combined, members: [own] })
      expect(second.ended).toBe(false)
      streams.retain({ target: combined, members: [] })
      expect(messagesIn(second)[1]).toMatchObject(ended)
      expect(own.sessions.map(({ closed }) => closed)).toEqual([1, 1])
    })
  })

  it('receive the supported revisions when they cannot be served', async () => {
    const reply = await fixture({ targets: [target({ sessionless: true }), fakeTarget('b')] }).backend(
      mcpExchange('POST', { headers, body }),
    )
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({ error: { code: -32022, data: { requested: version } } })
  })
})

describe('any body whatsoever', () => {
  const word = fc.constantFrom(
    'jsonrpc',
    'id',
    'method',
    'params',
    'result',
    'error',
    'name',
    'uri',
    '_meta',
    'ref',
    'Name',
  )
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom(
      '2.0',
      'tools/call',
      'tools/list',
      'initialize',
      'resources/read',
      'notifications/cancelled',
      'a_echo',
      1,
    ),
  )
  const envelope = fc
    .tuple(fc.dictionary(word, value), fc.boolean(), fc.dictionary(word, value))
    .map(([members, wellFormed, params]) =>
      JSON.stringify(wellFormed ? { jsonrpc: '2.0', ...members, params } : members),
    )

  it('is answered, and never with a defect of the gateway', async () => {
    const { backend, begin } = fixture({ targets: [target(), fakeTarget('b')] })
    const headers = await begin()
    await fc.assert(
      fc.asyncProperty(fc.oneof(envelope, fc.string(), fc.json()), async (body) => {
        const reply = await backend(mcpExchange('POST', { headers, body }))
        expect([200, 202, 400]).toContain(reply.status)
        for (const message of messagesIn(read(reply))) expect(message).toHaveProperty('jsonrpc', '2.0')
      }),
      { numRuns: 300 },
    )
  })
})
