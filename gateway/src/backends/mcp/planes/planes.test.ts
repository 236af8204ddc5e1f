import { afterEach, describe, expect, it } from 'vitest'
import {
  type FakeTarget,
  type FakeTargetOptions,
  fakeTarget,
  fixturePlaces,
  mcpExchange,
  messagesIn,
  read,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { textOf } from '../../../../test/fixtures/pipeline.ts'
import { linkPeers } from '../../../../test/support/linked-peers.ts'
import { until } from '../../../../test/support/wait.ts'
import { systemClock } from '../../../lib/clock.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import type { Peers } from '../../../lib/planes/peers.ts'
import { createWorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { isSource } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Backend } from '../../../pipeline/policy.ts'
import { noCaller } from '../../../upstream/credentials/caller.ts'
import type { Authorize } from '../../../upstream/credentials/credentials.ts'
import type { McpRules } from '../endpoint/call-context.ts'
import { createEndpoint } from '../endpoint/endpoint.ts'
import { federate } from '../federation/federation.ts'
import { createLoginLinks } from '../logins/links.ts'
import type { CallToken, TargetLogin } from '../logins/target-login.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { Slots } from '../sessions/admission.ts'
import { createSessionIds } from '../sessions/session-id.ts'
import { createSessions, type Sessions } from '../sessions/sessions.ts'
import { createSessionHub } from './session-links.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const call = (id: number, name = 'echo') => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })
const minute = 60_000

type Plane = { backend: Backend; sessions: Sessions; targets: FakeTarget[] }

type Options = {
  count?: number
  targets?: (plane: number) => FakeTarget[]
  rules?: McpRules
  slots?: Slots
  sharedKey?: boolean
}

let close: (() => void) | undefined
afterEach(() => close?.())

const answering = (plane: number): FakeTargetOptions => ({
  behaviours: { 'tools/call': () => ({ content: [], plane }) },
})
const bound = (plane: number) => [fakeTarget('a', { pinned: true, ...answering(plane) })]
const sealed = (plane: number) => [fakeTarget('a', answering(plane))]

/** The same endpoint on several data planes. */
function fixture(options: Options = {}) {
  const linked = linkPeers(options.count ?? 3)
  close = linked.close
  let timeMs = 1_000_000
  const clock = { now: () => timeMs, monotonic: () => timeMs }
  const slots = options.slots ?? fixturePlaces()
  const start = (peers: Peers): Plane => {
    const targets = (options.targets ?? bound)(peers.self)
    const sessions = createSessions({
      clock,
      ids: createSessionIds(Buffer.alloc(32, 3), 'mcp'),
      sharedKey: options.sharedKey ?? false,
      ttlMs: 30 * minute,
      slots,
      maxEndedIds: 10,
      links: createSessionHub(peers).join('mcp'),
    })
    const federation = federate(targets, {
      prefixMode: 'conditional',
      failOpen: false,
      version: '1',
      initializeTimeoutMs: 5_000,
    })
    if (federation === undefined) throw new Error('no targets')
    const backend = createEndpoint({
      federation,
      sessions,
      clock,
      stateless: false,
      rules: options.rules,
      maxBodyBytes: 10_000,
      workQueue: createWorkQueue(systemClock),
      version: '1',
    })
    return { backend, sessions, targets }
  }
  const planes = linked.peers.map(start)
  const at = (plane: number): Plane => {
    const found = planes[plane]
    if (found === undefined) throw new Error(`no plane ${plane}`)
    return found
  }
  return {
    at,
    linked,
    advance(ms: number) {
      timeMs += ms
    },
    target: (plane: number): FakeTarget => {
      const [only] = at(plane).targets
      if (only === undefined) throw new Error('no target')
      return only
    },
    post: (plane: number, body: JsonObject, headers: Record<string, string> = {}, facts = {}) =>
      at(plane).backend(mcpExchange('POST', { headers, body, facts })),
    send: (plane: number, method: string, headers: Record<string, string>, facts = {}) =>
      at(plane).backend(mcpExchange(method, { headers, facts })),
    async begin(plane: number, facts = {}) {
      const reply = await at(plane).backend(mcpExchange('POST', { body: initialize, facts }))
      expect(reply.status).toBe(200)
      return { 'mcp-session-id': String(reply.headers['mcp-session-id']) }
    },
    replace(plane: number) {
      planes[plane] = start(linked.replace(plane))
    },
  }
}

const waitFor = (met: () => boolean) => until(met.toString(), met, 5_000)
const resultOf = (reply: Reply) => messagesIn(read(reply))
const answeredBy = (plane: number, id: number) => [{ jsonrpc: '2.0', id, result: { content: [], plane } }]
const alice = { jwt: { iss: 'i', sub: 'alice' } }
const bob = { jwt: { iss: 'i', sub: 'bob' } }

describe('a session with a program', () => {
  it('is served by its home from connections on any data plane', async () => {
    const { begin, post, target } = fixture()
    const headers = await begin(0)
    for (const [index, plane] of [1, 2, 0, 1, 1, 2].entries()) {
      const reply = await post(plane, call(index), headers)
      expect(resultOf(reply)).toEqual(answeredBy(0, index))
    }
    expect([0, 1, 2].map((plane) => target(plane).sessions.length)).toEqual([1, 0, 0])
    const notified = await post(2, { jsonrpc: '2.0', method: 'notifications/initialized' }, headers)
    expect(notified.status).toBe(202)
    expect(target(0).sessions[0]?.delivered).toEqual([
      { jsonrpc: '2.0', method: 'notifications/initialized' },
    ])
  })

  it('is none for another owner, on any data plane', async () => {
    const { begin, post, target } = fixture()
    const headers = await begin(0, alice)
    for (const plane of [0, 1, 2]) {
      expect((await post(plane, call(1), headers, bob)).status).toBe(404)
      expect((await post(plane, call(1), headers)).status).toBe(404)
    }
    expect(target(0).sessions[0]?.requests).toHaveLength(1)
    expect((await post(1, call(1), headers, alice)).status).toBe(200)
  })

  it('has rules with the facts of the request, on its own data plane', async () => {
    const rules: McpRules = {
      permits: ({ facts }, { name }) => facts.jwt?.['scope'] === name,
      permitsMethod: () => true,
    }
    const { begin, post, target } = fixture({ rules })
    const headers = await begin(0, alice)
    const scoped = { jwt: { ...alice.jwt, scope: 'echo' } }
    expect(resultOf(await post(1, call(1), headers, scoped))).toEqual(answeredBy(0, 1))
    const refused = await post(1, call(2, 'other'), headers, scoped)
    expect(JSON.parse(textOf(refused))).toMatchObject({ error: { code: -32602 } })
    expect(target(0).sessions[0]?.requests).toHaveLength(2)
  })

  it('ends for all data planes before the response to DELETE on any', async () => {
    const { begin, post, send, target } = fixture()
    const headers = await begin(0)
    await post(2, call(1), headers)
    expect((await send(1, 'DELETE', headers)).status).toBe(204)
    expect(target(0).sessions[0]?.closed).toBe(1)
    for (const plane of [0, 1, 2]) {
      const reply = await post(plane, call(2), headers)
      expect(reply.status).toBe(404)
      expect(textOf(reply)).toContain('Session not found: the client ended it')
    }
  })

  it('ends for all data planes with its program', async () => {
    const { begin, post, target, at } = fixture()
    const headers = await begin(0)
    target(0).behaviours['tools/call'] = () => undefined
    const pending = post(1, call(1), headers)
    await waitFor(() => target(0).sessions[0]?.requests.length === 2)
    target(0).sessions[0]?.die('exit code 1')
    const reply = await pending
    expect(reply.status).toBe(404)
    await waitFor(() => at(1).sessions.size === 0)
    for (const plane of [0, 1, 2]) {
      expect(textOf(await post(plane, call(2), headers))).toContain('exit code 1')
    }
  })

  it('ends with its data plane: open uses fail, later requests receive the reason', async () => {
    const { begin, post, send, target, linked, at, replace } = fixture()
    const headers = await begin(0)
    target(0).behaviours['tools/call'] = (_, sink) => {
      sink.message(messageOf({ jsonrpc: '2.0', method: 'notifications/message', params: {} }))
      return undefined
    }
    const streamed = read(await post(1, call(1), headers))
    const stream = read(await send(2, 'GET', headers))
    await waitFor(() => streamed.events.length === 1)
    linked.end(0)
    await waitFor(() => streamed.ended && stream.ended)
    expect(messagesIn(streamed)[1]).toMatchObject({
      id: 1,
      error: { message: expect.stringContaining('its worker thread has ended') },
    })
    await waitFor(() => at(1).sessions.size === 0)
    const refused = await post(1, call(2), headers)
    expect([refused.status, textOf(refused)]).toEqual([
      404,
      expect.stringContaining('worker thread has ended'),
    ])
    replace(0)
    for (const plane of [0, 1, 2]) {
      const reply = await post(plane, call(3), headers)
      expect([reply.status, textOf(reply)]).toEqual([404, expect.stringContaining('thread has ended')])
    }
  })

  it('sends messages outside requests to a stream on another data plane', async () => {
    const { begin, send, target } = fixture()
    const headers = await begin(0)
    const stream = read(await send(1, 'GET', headers))
    const notification = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
    target(0).sessions[0]?.streams[0]?.sink.message(messageOf(notification), { id: 'e1' })
    await waitFor(() => stream.events.length === 1)
    expect(messagesIn(stream)).toEqual([notification])
    const again = await send(2, 'GET', { ...headers, 'last-event-id': 'e1' })
    expect(again.status).toBe(200)
    expect(target(0).sessions[0]?.streams[1]?.context.lastEventId).toBe('e1')
    target(0).sessions[0]?.streams[0]?.sink.end()
    await waitFor(() => stream.ended)
  })

  it('offers no stream where its target has none', async () => {
    const { begin, send, target } = fixture()
    const headers = await begin(0)
    target(0).listening = 'none'
    expect((await send(1, 'GET', headers)).status).toBe(405)
  })

  it('cancels a request whose client has disconnected on another data plane', async () => {
    const { begin, at, target } = fixture()
    const headers = await begin(0)
    target(0).behaviours['tools/call'] = () => undefined
    const exchange = mcpExchange('POST', { headers, body: call(1) })
    const reply = at(1).backend(exchange)
    await waitFor(() => target(0).sessions[0]?.requests.length === 2)
    exchange.cancellation.cancel()
    await reply
    await waitFor(() => target(0).sessions[0]?.cancelled === 1)
  })

  it('pauses its target while a client on another data plane does not read', async () => {
    const { begin, post, target } = fixture()
    const headers = await begin(0)
    const text = 'x'.repeat(10_000)
    const chunk = messageOf({ jsonrpc: '2.0', method: 'notifications/message', params: { text } })
    let sent = 0
    const response = messageOf({ jsonrpc: '2.0', id: 1, result: {} })
    target(0).behaviours['tools/call'] = (_, sink) => {
      while (sink.message(chunk)) sent += 1
      return undefined
    }
    const { body } = await post(1, call(1), headers)
    await settle()
    expect(sent).toBeGreaterThan(10)
    expect(sent).toBeLessThan(40)
    if (!isSource(body)) throw new Error('not streamed')
    let received = 0
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    body.start({
      write(part) {
        received += part.length
        return true
      },
      end: () => resolve(),
      fail: () => resolve(),
    })
    await waitFor(() => received > sent * text.length)
    const [, sink] = target(0).sessions[0]?.sinks ?? []
    await waitFor(() => sink?.message(chunk) === true)
    sink?.message(response)
    sink?.end()
    await ended
  })

  it('passes failures of its target unchanged', async () => {
    const { begin, post, target } = fixture()
    const headers = await begin(0)
    const challenge: Reply = {
      status: 401,
      headers: { 'www-authenticate': 'Bearer' },
      body: Buffer.from('no'),
    }
    target(0).behaviours['tools/call'] = () => ({ kind: 'reply', reply: challenge })
    const reply = await post(1, call(1), headers)
    expect([reply.status, reply.headers['www-authenticate'], textOf(reply)]).toEqual([401, 'Bearer', 'no'])
  })

  it('stops after its requests, wherever they arrived', async () => {
    const { begin, post, target, at } = fixture()
    const headers = await begin(0)
    target(0).behaviours['tools/call'] = () => undefined
    const pending = post(1, call(1), headers)
    await waitFor(() => target(0).sessions[0]?.requests.length === 2)
    let stopped = 0
    const stops = [0, 1, 2].map((plane) =>
      at(plane)
        .sessions.stop()
        .then(() => (stopped += 1)),
    )
    await waitFor(() => stopped === 1)
    expect(target(0).sessions[0]?.closed).toBe(0)
    const [, sink] = target(0).sessions[0]?.sinks ?? []
    sink?.message(messageOf({ jsonrpc: '2.0', id: 1, result: {} }))
    sink?.end()
    expect((await pending).status).toBe(200)
    await Promise.all(stops)
    expect(target(0).sessions[0]?.closed).toBe(1)
  })

  it('continues with its target after another was added', async () => {
    const targets = (plane: number) => (plane === 1 ? [...bound(1), fakeTarget('b')] : bound(plane))
    const { begin, post } = fixture({ targets })
    const headers = await begin(0)
    expect(resultOf(await post(1, call(1), headers))).toEqual(answeredBy(0, 1))
  })

  it('ends when its targets differ on the data plane of a request', async () => {
    const targets = (plane: number): FakeTarget[] => [
      { ...fakeTarget('a', { pinned: true, ...answering(plane) }), signature: plane === 2 ? 'new' : 'old' },
    ]
    const { begin, post } = fixture({ targets })
    const headers = await begin(0)
    expect((await post(1, call(1), headers)).status).toBe(200)
    const reply = await post(2, call(1), headers)
    expect([reply.status, textOf(reply)]).toEqual([404, expect.stringContaining('has changed')])
  })
})

describe('a sealed session', () => {
  it('is resumed on any data plane without its home', async () => {
    const { begin, post, linked, target } = fixture({ targets: sealed })
    const headers = await begin(0)
    expect(resultOf(await post(1, call(1), headers))).toEqual(answeredBy(1, 1))
    linked.end(0)
    expect(resultOf(await post(1, call(2), headers))).toEqual(answeredBy(1, 2))
    expect(resultOf(await post(2, call(3), headers))).toEqual(answeredBy(2, 3))
    expect(target(1).sessions).toHaveLength(1)
  })

  it('ends for all data planes before the response to DELETE on any, and for later ones', async () => {
    const { begin, post, send, target, replace } = fixture({ targets: sealed })
    const headers = await begin(0)
    await post(1, call(1), headers)
    const stream = read(await send(0, 'GET', headers))
    expect((await send(2, 'DELETE', headers)).status).toBe(204)
    await waitFor(() => stream.ended)
    replace(1)
    for (const plane of [0, 1, 2]) {
      const reply = await post(plane, call(2), headers)
      expect([reply.status, textOf(reply)]).toEqual([404, expect.stringContaining('the client ended it')])
    }
    expect([0, 2].map((plane) => target(plane).sessions[0]?.closed)).toEqual([0, 1])
  })

  it('counts once toward limits', async () => {
    const slots = fixturePlaces({ maxMcpSessions: 2, maxMcpSessionsPerClient: 2 })
    const { begin, post } = fixture({ targets: sealed, slots })
    const headers = await begin(0)
    for (const plane of [0, 1, 2]) expect((await post(plane, call(1), headers)).status).toBe(200)
    const other = await begin(1)
    for (const plane of [0, 1, 2]) expect((await post(plane, call(1), other)).status).toBe(200)
    expect((await post(2, initialize)).status).toBe(429)
  })

  it('ends for a new session of its client at the limit only while no data plane uses it', async () => {
    const slots = fixturePlaces({ maxMcpSessionsPerClient: 1 })
    const { begin, post, advance, send } = fixture({ targets: sealed, slots })
    const headers = await begin(0)
    advance(2 * minute)
    await post(1, call(1), headers)
    expect((await post(2, initialize)).status).toBe(429)
    const stream = await send(1, 'GET', headers)
    advance(2 * minute)
    expect((await post(0, initialize)).status).toBe(429)
    if (isSource(stream.body)) stream.body.cancel()
    // The report of this use precedes the next message.
    expect((await post(1, call(2), headers)).status).toBe(200)
    expect((await post(2, initialize)).status).toBe(429)
    advance(2 * minute)
    expect((await post(2, initialize)).status).toBe(200)
    expect((await post(1, call(1), headers)).status).toBe(404)
  })

  it('expires only when no data plane has used it', async () => {
    const { begin, post, advance, at, target } = fixture({ targets: sealed })
    const headers = await begin(0)
    for (let round = 0; round < 3; round += 1) {
      advance(29 * minute)
      expect((await post(1, call(1), headers)).status).toBe(200)
      advance(2 * minute)
      at(0).sessions.sweep()
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect((await post(0, call(1), headers)).status).toBe(200)
    advance(31 * minute)
    at(1).sessions.sweep()
    expect(at(1).sessions.size).toBe(0)
    at(0).sessions.sweep()
    await waitFor(() => target(0).sessions[0]?.closed === 1)
    for (const plane of [0, 1, 2]) {
      expect(textOf(await post(plane, call(2), headers))).toContain('it was not used for too long')
    }
  })

  it('is found by its home after use on another data plane alone', async () => {
    const { begin, post, advance } = fixture({ targets: sealed })
    const headers = await begin(0)
    advance(29 * minute)
    await post(1, call(1), headers)
    advance(29 * minute)
    expect((await post(0, call(2), headers)).status).toBe(200)
  })

  it('closes at shutdown after requests on other data planes', async () => {
    const { begin, post, target, at } = fixture({ targets: sealed })
    const headers = await begin(0)
    target(1).behaviours['tools/call'] = () => undefined
    const pending = post(1, call(1), headers)
    await waitFor(() => target(1).sessions[0]?.requests.length === 1)
    const stops = [0, 1, 2].map((plane) => at(plane).sessions.stop())
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(target(0).sessions[0]?.closed).toBe(0)
    const [sink] = target(1).sessions[0]?.sinks ?? []
    sink?.message(messageOf({ jsonrpc: '2.0', id: 1, result: {} }))
    sink?.end()
    expect((await pending).status).toBe(200)
    await Promise.all(stops)
    expect([0, 1].map((plane) => target(plane).sessions[0]?.closed)).toEqual([1, 0])
  })
})

describe('a session at a program and an HTTP server', () => {
  it('has calls of the program at its home, and of the server anywhere', async () => {
    const targets = (plane: number) => [
      fakeTarget('a', { pinned: true, ...answering(plane) }),
      fakeTarget('b', answering(plane)),
    ]
    const { begin, post, at } = fixture({ targets })
    const headers = await begin(0)
    expect(resultOf(await post(1, call(1, 'a_echo'), headers))).toEqual(answeredBy(0, 1))
    expect(resultOf(await post(1, call(2, 'b_echo'), headers))).toEqual(answeredBy(1, 2))
    const response = { jsonrpc: '2.0', id: '0:7', result: {} }
    expect((await post(2, response, headers)).status).toBe(202)
    expect(at(0).targets[0]?.sessions[0]?.delivered).toEqual([{ jsonrpc: '2.0', id: 7, result: {} }])
    expect(at(1).targets.map(({ sessions }) => sessions.length)).toEqual([0, 1])
  })
})

describe('a session of the HTTP+SSE transport', () => {
  const path = '/sse'

  async function openStream({ at }: ReturnType<typeof fixture>, plane: number) {
    const stream = read(await at(plane).backend(mcpExchange('GET', { path })))
    const query = (stream.events[0]?.data ?? '').slice(path.length)
    const post = (to: number, body: JsonObject) =>
      at(to).backend(mcpExchange('POST', { path, query, body: JSON.stringify(body) }))
    return { stream, post, messages: () => messagesIn({ ...stream, events: stream.events.slice(1) }) }
  }

  it.each([bound, sealed])('has requests on any data plane and one stream %#', async (targets) => {
    const planes = fixture({ targets })
    const { post, messages } = await openStream(planes, 0)
    expect((await post(1, initialize)).status).toBe(202)
    await waitFor(() => messages().length === 1)
    expect((await post(2, { jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
    expect((await post(2, call(1))).status).toBe(202)
    expect((await post(0, call(2))).status).toBe(202)
    await waitFor(() => messages().length === 3)
    expect(messages().slice(1)).toEqual(expect.arrayContaining([...answeredBy(0, 1), ...answeredBy(0, 2)]))
    const [session] = planes.target(0).sessions
    await waitFor(() => session?.streams.length === 1)
    const notification = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
    session?.streams[0]?.sink.message(messageOf(notification))
    await waitFor(() => messages().length === 4)
    expect(messages()[3]).toEqual(notification)
  })

  it('receives messages outside requests with the credential of the client', async () => {
    const authorize: Authorize = {
      source: 'client',
      apply(request, caller) {
        if (caller === noCaller) throw new GatewayError('credential_unavailable', 'no caller')
        request.headers['authorization'] = 'Bearer t'
        return undefined
      },
    }
    const planes = fixture({
      targets: (plane) => bound(plane).map((target) => Object.assign(target, { authorize: () => authorize })),
    })
    const { post, messages } = await openStream(planes, 0)
    await post(1, initialize)
    await waitFor(() => messages().length === 1)
    await waitFor(() => planes.target(0).sessions[0]?.streams.length === 1)
    const [stream] = planes.target(0).sessions[0]?.streams ?? []
    expect(stream?.context.headers['authorization']).toBe('Bearer t')
    const notification = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
    stream?.sink.message(messageOf(notification))
    await waitFor(() => messages().length === 2)
    expect(messages()[1]).toEqual(notification)
  })

  it('reports the end of the data plane of a request, and continues', async () => {
    const planes = fixture()
    const { post, messages } = await openStream(planes, 0)
    await post(0, initialize)
    planes.target(0).behaviours['tools/call'] = () => undefined
    expect((await post(1, call(1))).status).toBe(202)
    await waitFor(() => planes.target(0).sessions[0]?.requests.length === 2)
    planes.linked.end(1)
    await waitFor(() => messages().length === 2)
    expect(messages()[1]).toMatchObject({ id: 1, error: { code: -32603 } })
    planes.target(0).behaviours['tools/call'] = () => ({ content: [], plane: 0 })
    expect((await post(2, call(2))).status).toBe(202)
    await waitFor(() => messages().length === 3)
  })

  it.each([0, 1])('answers a request whose target throws, on data plane %d', async (plane) => {
    const planes = fixture({ targets: bound })
    const { post, messages } = await openStream(planes, 0)
    await post(plane, initialize)
    const throwing = () => {
      throw new Error('defect')
    }
    planes.target(0).behaviours['tools/call'] = throwing
    for (const id of [1, 2]) expect((await post(plane, call(id))).status).toBe(202)
    await waitFor(() => messages().length === 3)
    expect(messages().slice(1)).toMatchObject([{ id: 1, error: { code: -32603 } }, { id: 2 }])
  })

  it('ends with its stream for all data planes', async () => {
    const planes = fixture()
    const exchange = mcpExchange('GET', { path })
    const stream = read(await planes.at(0).backend(exchange))
    const query = (stream.events[0]?.data ?? '').slice(path.length)
    const post = () =>
      planes.at(1).backend(mcpExchange('POST', { path, query, body: JSON.stringify(initialize) }))
    expect((await post()).status).toBe(202)
    exchange.cancellation.cancel()
    await waitFor(() => planes.at(1).sessions.size === 0)
    const reply = await post()
    expect([reply.status, textOf(reply)]).toEqual([404, expect.stringContaining('its stream ended')])
  })
})

describe('a session with a login of its user', () => {
  const path = '/sse'
  const url = 'https://a.test/oauth/start'
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }

  function world(pinned: boolean) {
    const state: { token: CallToken; callers: unknown[] } = { token: { kind: 'none', url }, callers: [] }
    const login: TargetLogin = {
      target: 'a',
      publicUrl: new URL('https://a.test'),
      links: createLoginLinks(new Uint8Array(32), 'x', () => 0),
      service: createLoginServiceStub(),
      link: () => url,
      async token(caller) {
        state.callers.push(caller?.facts.jwt?.['sub'])
        return state.token
      },
    }
    const behaviours = { ...answering(0).behaviours, 'tools/list': () => ({ tools: [{ name: 'read' }] }) }
    const planes = fixture({ targets: () => [{ ...fakeTarget('a', { pinned, behaviours }), login }] })
    // Targets are spread into the one with the login, so its sessions are those of the original.
    const sessions = () => [0, 1, 2].flatMap((plane) => planes.at(plane).targets[0]?.sessions ?? [])
    return { state, planes, sessions }
  }

  async function open({ planes }: ReturnType<typeof world>) {
    const stream = read(await planes.at(0).backend(mcpExchange('GET', { path, facts: alice })))
    const query = (stream.events[0]?.data ?? '').slice(path.length)
    const messages = () => messagesIn({ ...stream, events: stream.events.slice(1) })
    async function ask(plane: number, body: JsonObject) {
      const before = messages().length
      const exchange = mcpExchange('POST', { path, query, body: JSON.stringify(body), facts: alice })
      expect((await planes.at(plane).backend(exchange)).status).toBe(202)
      if ('id' in body)
        await waitFor(() =>
          messages()
            .slice(before)
            .some((one) => idOf(one) === body['id']),
        )
      return messages().at(-1)
    }
    return { ask, stream }
  }

  const idOf = (message: unknown) => (isJsonObject(message) ? message['id'] : undefined)
  const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' })
  const signIn = (id: number) => call(id, 'sign_in')

  it.each([true, false])('begins once at the target, pinned: %s', async (pinned) => {
    const fixed = world(pinned)
    const { state, sessions, planes } = fixed
    state.token = { kind: 'token', token: 't' }
    const { ask, stream } = await open(fixed)
    await ask(1, initialize)
    await ask(2, initialized)
    expect(await ask(2, call(1))).toEqual(answeredBy(0, 1)[0])
    expect(await ask(0, call(2))).toEqual(answeredBy(0, 2)[0])
    expect(sessions()).toHaveLength(1)
    expect(sessions()[0]?.requests.map(({ method, params }) => [method, params])).toEqual([
      ['initialize', initialize.params],
      ['tools/call', { name: 'echo' }],
      ['tools/call', { name: 'echo' }],
    ])
    expect(new Set(sessions()[0]?.contexts.map(({ headers }) => headers['authorization']))).toEqual(
      new Set(['Bearer t']),
    )
    expect(new Set(state.callers)).toEqual(new Set(['alice']))
    await waitFor(() => sessions()[0]?.streams.length === 1)
    const notification = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
    sessions()[0]?.streams[0]?.sink.message(messageOf(notification))
    await waitFor(() => stream.events.length === 5)
    sessions()[0]?.die('exit code 1')
    await waitFor(() => planes.at(1).sessions.size === 0 && stream.ended)
  })

  it('ends at the target on every data plane that has connected', async () => {
    const { state, sessions, planes } = world(false)
    const headers = await planes.begin(0, alice)
    state.token = { kind: 'token', token: 't' }
    for (const plane of [0, 1]) expect((await planes.post(plane, list(1), headers, alice)).status).toBe(200)
    expect(sessions()).toHaveLength(2)
    expect((await planes.send(2, 'DELETE', headers, alice)).status).toBe(204)
    await waitFor(() => sessions().every(({ closed }) => closed === 1))
  })

  it('begins once after the login, on whichever data plane', async () => {
    const fixed = world(false)
    const { state, sessions } = fixed
    const { ask } = await open(fixed)
    expect(await ask(1, initialize)).toMatchObject({ result: { serverInfo: { name: 'a' } } })
    await ask(2, initialized)
    expect(await ask(2, list(1))).toMatchObject({ result: { tools: [{ name: 'sign_in' }] } })
    expect(await ask(0, list(2))).toMatchObject({ result: { tools: [{ name: 'sign_in' }] } })
    expect(await ask(1, call(3))).toMatchObject({ error: { code: -32042 } })
    expect(JSON.stringify(await ask(2, signIn(4)))).toContain(url)
    expect(sessions()).toEqual([])
    state.token = { kind: 'token', token: 't' }
    expect(JSON.stringify(await ask(2, signIn(5)))).toContain('You are signed in')
    await Promise.all([ask(1, call(6)), ask(2, call(7)), ask(0, call(8))])
    expect(await ask(2, list(9))).toMatchObject({ result: { tools: [{ name: 'read' }] } })
    expect(sessions()).toHaveLength(1)
    const [session] = sessions()
    expect(session?.requests.filter(({ method }) => method === 'initialize')).toMatchObject([
      { params: initialize.params },
    ])
    expect(session?.delivered).toMatchObject([initialized])
    expect(session?.contexts.every(({ headers }) => headers['authorization'] === 'Bearer t')).toBe(true)
  })
})

function createLoginServiceStub(): TargetLogin['service'] {
  const unexpected = () => Promise.reject(new Error('unexpected'))
  return { token: unexpected, authorize: unexpected, redeem: unexpected }
}
