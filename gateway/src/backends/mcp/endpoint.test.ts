import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { Reply } from '../../net/send.ts'
import { textOf } from '../../pipeline/fixtures.ts'
import type { Backend } from '../../pipeline/policy.ts'
import type { McpRules } from './client.ts'
import { createEndpoint } from './endpoint.ts'
import { federate } from './federation.ts'
import {
  type FakeTarget,
  type FakeTargetOptions,
  fakeTarget,
  mcpExchange,
  messagesIn,
  read,
  settle,
} from './fixtures.ts'
import { messageOf } from './json-rpc.ts'
import { createSessionIds } from './session-id.ts'
import { createSessions, type Sessions } from './sessions.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const call = (id: number, name = 'echo') => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })

type Options = { targets?: FakeTarget[]; stateless?: boolean; rules?: McpRules; maxBodyBytes?: number }

const clock = { now: () => 1_000, monotonic: () => 1_000 }

function createStore(): Sessions {
  const ids = createSessionIds(Buffer.alloc(32, 3), 'mcp')
  return createSessions({ clock, ids, sharedKey: true, ttlMs: 1_000, maxSessions: 10, maxRemembered: 10 })
}

function fixture(options: Options = {}) {
  const targets = options.targets ?? [target()]
  const sessions = createStore()
  const federation = federate(targets, { prefixMode: 'conditional', failOpen: false, version: '1' })
  if (federation === undefined) throw new Error('no targets')
  const { stateless = false, rules, maxBodyBytes = 10_000 } = options
  const create = (store: Sessions): Backend =>
    createEndpoint({ federation, sessions: store, clock, stateless, rules, maxBodyBytes, version: '1' })
  const backend = create(sessions)
  return {
    backend,
    create,
    sessions,
    target: targets[0] ?? target(),
    /** Begins a session and returns what its requests carry. */
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
      expect(errorIn(reply)).toMatchObject({ id: 1, error: { code: -32001 } })
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

  it('does not begin twice', async () => {
    const { backend, begin } = fixture()
    const headers = await begin()
    expect((await backend(mcpExchange('POST', { headers, body: initialize }))).status).toBe(400)
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
    expect((await backend(mcpExchange('DELETE', { headers }))).status).toBe(202)
    expect(own.sessions[0]?.closed).toBe(1)
    expect((await backend(mcpExchange('POST', { headers, body: call(1) }))).status).toBe(404)
    expect((await backend(mcpExchange('DELETE', { headers }))).status).toBe(404)
  })

  it('is over when its target says so', async () => {
    const own = target({ behaviours: { 'tools/call': () => ({ kind: 'ended', reason: 'exit code 1' }) } })
    const { backend, begin } = fixture({ targets: [own] })
    const headers = await begin()
    const reply = await backend(mcpExchange('POST', { headers, body: call(1) }))
    expect(reply.status).toBe(404)
    expect(textOf(reply)).toContain('exit code 1')
    expect((await backend(mcpExchange('POST', { headers, body: call(2) }))).status).toBe(404)
    expect(own.sessions[0]?.closed).toBe(1)
  })

  it('answers what is under way when it ends', async () => {
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
    const federation = federate([kept], { prefixMode: 'conditional', failOpen: false, version: '1' })
    if (federation === undefined) throw new Error('no targets')
    const after = createEndpoint({
      federation,
      sessions: before.sessions,
      clock,
      stateless: false,
      rules: undefined,
      maxBodyBytes: 10_000,
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
    expect(id).toHaveLength(36)
    const headers = { 'mcp-session-id': id }
    expect((await backend(mcpExchange('POST', { headers, body: call(1) }))).status).toBe(404)
    expect((await backend(mcpExchange('DELETE', { headers }))).status).toBe(404)
    expect(stream.ended).toBe(false)
  })
})

describe('what the client sends', () => {
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

  it('is refused with what the target said of it', async () => {
    const { backend, begin, target: own } = fixture()
    const headers = await begin()
    own.refusals['notifications/x'] = {
      kind: 'reply',
      reply: { status: 418, headers: {}, body: Buffer.from('tea') },
    }
    const reply = await backend(
      mcpExchange('POST', { headers, body: { jsonrpc: '2.0', method: 'notifications/x' } }),
    )
    expect(reply.status).toBe(418)
    expect(textOf(reply)).toBe('tea')
  })
})

describe('failures of a target', () => {
  it.each([
    ['upstream_connect', 503],
    ['upstream_timeout', 504],
    ['upstream_invalid', 502],
    ['internal', 500],
  ] as const)('%s is answered with its status and a JSON-RPC error', async (code, status) => {
    const error = new GatewayError(code, 'what happened')
    const { backend, begin } = fixture({
      targets: [target({ behaviours: { 'tools/call': () => ({ kind: 'error', error }) } })],
    })
    const exchange = mcpExchange('POST', { headers: await begin(), body: call(3) })
    const reply = await backend(exchange)
    expect(reply.status).toBe(status)
    expect(errorIn(reply)).toEqual({
      jsonrpc: '2.0',
      id: 3,
      error: { code: -32603, message: 'what happened' },
    })
    expect(exchange.failure).toBe(error)
  })

  it('that are defects end the request, and leave its session free', async () => {
    const defective = (): never => {
      throw new Error('defect')
    }
    const own = target({ behaviours: { 'tools/call': defective } })
    const { backend, begin, sessions } = fixture({ targets: [own] })
    const headers = await begin()
    const reply = await backend(mcpExchange('POST', { headers, body: call(3) }))
    expect(reply.status).toBe(500)
    expect(textOf(reply)).not.toContain('defect')
    Object.defineProperty(own, 'listening', { get: defective })
    expect((await backend(mcpExchange('GET', { headers }))).status).toBe(500)
    const session = sessions.find(headers['mcp-session-id'], { target: own, members: [own] }, '')
    expect(session?.uses.length).toBe(0)
  })

  it('that refuse over HTTP are passed on', async () => {
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

  it('apply with the token of the very request, and hide what they refuse', async () => {
    const { backend, begin } = fixture({ targets: [target(), fakeTarget('b')], rules })
    const headers = await begin({ jwt: { role: 'echo' } })
    const post = (role: string, name: string) =>
      backend(mcpExchange('POST', { headers, body: call(1, name), facts: { jwt: { role } } }))
    expect((await post('echo', 'a_echo')).status).toBe(200)
    const refused = await post('other', 'a_echo')
    expect(refused.status).toBe(400)
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

  it('is a stream of what belongs to no request, open at once', async () => {
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
    const session = sessions.find(headers['mcp-session-id'], { target: own, members: [own] }, '')
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
    expect((await backend(mcpExchange('POST', { body: call(1) }))).status).toBe(503)
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
  ])('are refused when a header says %s', async (_, wrong, inside = version) => {
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

  it('are told which of their kind there are when their revision is unknown', async () => {
    const unknown = '2999-01-01'
    const params = { name: 'echo', _meta: { 'io.modelcontextprotocol/protocolVersion': unknown } }
    const wrong = { ...headers, 'mcp-protocol-version': unknown }
    const reply = await single().backend(mcpExchange('POST', { headers: wrong, body: { ...body, params } }))
    expect(reply.status).toBe(400)
    expect(errorIn(reply)).toMatchObject({
      error: { code: -32022, data: { requested: unknown, supported: [version] } },
    })
  })

  it('may say their name in base64', async () => {
    const encoded = `=?base64?${Buffer.from('grüße').toString('base64')}?=`
    const named = { ...body, params: { name: 'grüße', ...meta } }
    const reply = await single().backend(
      mcpExchange('POST', { headers: { ...headers, 'mcp-name': encoded }, body: named }),
    )
    expect(reply.status).toBe(200)
  })

  it('are told which revisions there are where they cannot be served', async () => {
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
