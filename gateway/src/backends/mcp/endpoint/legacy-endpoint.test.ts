import { describe, expect, it, vi } from 'vitest'
import {
  type FakeTarget,
  fakeTarget,
  fixturePlaces,
  mcpExchange,
  messagesIn,
  read,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { systemClock } from '../../../lib/clock.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { createWorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { isSource } from '../../../net/http/body.ts'
import { federate } from '../federation/federation.ts'
import { messageOf } from '../message/json-rpc.ts'
import { createSessionIds } from '../sessions/session-id.ts'
import { createSessions } from '../sessions/sessions.ts'
import { createLegacyEndpoint } from './legacy-endpoint.ts'

const path = '/sse'
const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2024-11-05' } }
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } }

function fixture(
  target: FakeTarget = fakeTarget('a', { behaviours: { 'tools/call': () => ({ content: [] }) } }),
) {
  const clock = { now: () => 1_000, monotonic: () => 1_000 }
  const ids = createSessionIds(Buffer.alloc(32, 3), 'mcp')
  const sessions = createSessions({
    clock,
    ids,
    sharedKey: true,
    ttlMs: 1_000,
    slots: fixturePlaces({ maxMcpSessions: 2 }),
    maxEndedIds: 10,
  })
  const federation = federate([target], {
    prefixMode: 'conditional',
    failOpen: false,
    version: '1',
    initializeTimeoutMs: 5_000,
  })
  if (federation === undefined) throw new Error('no targets')
  const backend = createLegacyEndpoint({
    federation,
    sessions,
    clock,
    stateless: false,
    rules: undefined,
    maxBodyBytes: 10_000,
    workQueue: createWorkQueue(systemClock),
    version: '1',
  })
  const open = async (facts = {}) => {
    const exchange = mcpExchange('GET', { path, facts })
    const stream = read(await backend(exchange))
    const query = (stream.events[0]?.data ?? '').slice(path.length)
    const post = async (body: object, more = {}) =>
      (await backend(mcpExchange('POST', { path, query, body: JSON.stringify(body), facts, ...more }))).status
    return {
      exchange,
      stream,
      query,
      post,
      answers: () =>
        messagesIn(
          stream.events.length > 1
            ? { ...stream, events: stream.events.slice(1) }
            : { ...stream, events: [] },
        ),
    }
  }
  return { backend, target, sessions, open }
}

describe('the legacy SSE transport', () => {
  it('sends the POST URL first, and responds on the stream', async () => {
    const { open, target } = fixture()
    const { stream, query, post, answers } = await open()
    expect(stream.events[0]?.event).toBe('endpoint')
    expect(query).toMatch(/^\?sessionId=[\w-]{36,}$/)
    expect(await post(initialize)).toBe(202)
    expect(await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).toBe(202)
    expect(await post(call)).toBe(202)
    expect(answers()).toMatchObject([
      { id: 0, result: {} },
      { id: 1, result: { content: [] } },
    ])
    expect(target.sessions).toHaveLength(1)
  })

  it('delivers messages outside requests on the same stream', async () => {
    const { open, target } = fixture()
    const { post, answers } = await open()
    await post(initialize)
    await settle()
    target.sessions[0]?.streams[0]?.sink.message(messageOf({ jsonrpc: '2.0', method: 'n' }))
    expect(answers()).toHaveLength(2)
  })

  it('has only answers where opening the target’s own stream goes wrong', async () => {
    const own = fakeTarget('a', { behaviours: { 'tools/call': () => ({ content: [] }) } })
    const openOwn = own.open
    own.open = () => ({ ...openOwn(), listen: () => Promise.reject(new TypeError('a defect')) })
    const { post, answers } = await fixture(own).open()
    await post(initialize)
    await settle()
    expect(await post(call)).toBe(202)
    expect(answers()).toHaveLength(2)
  })

  it('answers failures of the target on the stream', async () => {
    const error = new GatewayError('upstream_timeout', 'slow')
    const { open } = fixture(
      fakeTarget('a', { behaviours: { 'tools/call': () => ({ kind: 'error', error }) } }),
    )
    const { post, answers } = await open()
    expect(await post(call)).toBe(202)
    expect(answers()).toEqual([{ jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'slow' } }])
  })

  it('ends the session with the stream', async () => {
    const { open, target, sessions } = fixture(
      fakeTarget('a', { behaviours: { 'tools/call': () => undefined } }),
    )
    const { exchange, post } = await open()
    await post(initialize)
    await post(call)
    exchange.cancellation.cancel()
    await settle()
    expect(sessions.size).toBe(0)
    expect(target.sessions[0]?.closed).toBe(1)
    expect(target.sessions[0]?.cancelled).toBeGreaterThan(0)
    expect(await post(call)).toBe(404)
  })

  it('rejects requests while the client does not read the responses', async () => {
    const content = [{ type: 'text', text: 'x'.repeat(70_000) }]
    const { backend, target } = fixture(
      fakeTarget('a', { behaviours: { 'tools/call': () => ({ content }) } }),
    )
    const { body } = await backend(mcpExchange('GET', { path }))
    const received: string[] = []
    if (!isSource(body)) throw new Error('no stream')
    body.start({
      write: (chunk) => received.push(Buffer.from(chunk).toString()) < 2,
      end() {},
      fail() {},
    })
    const query = /\?\S+/.exec(received[0] ?? '')?.[0] ?? ''
    const post = async () => (await backend(mcpExchange('POST', { path, query, body: call }))).status
    expect([await post(), await post(), await post()]).toEqual([202, 503, 503])
    expect(target.sessions[0]?.requests).toHaveLength(1)
    body.resume()
    expect(await post()).toBe(202)
  })

  it('bounds the pending requests', async () => {
    const own = fakeTarget('a')
    const openOwn = own.open
    own.open = () => ({ ...openOwn(), request: () => ({ resume() {}, cancel() {} }) })
    const { post } = await fixture(own).open()
    for (let count = 0; count < 1_024; count += 1) expect(await post({ ...call, id: count })).toBe(202)
    expect(await post(call)).toBe(503)
  })

  it('ends with the newest token its client has shown', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { open } = fixture()
      const jwt = { iss: 'i', sub: 'alice' }
      const { stream, post } = await open({ jwt: { ...jwt, exp: 61 } })
      expect(await post(call, { facts: { jwt: { ...jwt, exp: 121 } } })).toBe(202)
      vi.advanceTimersByTime(179_000)
      expect(stream.ended).toBe(false)
      vi.advanceTimersByTime(1_000)
      expect(stream.ended).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })

  it('ends the stream when the target dies', async () => {
    const { open, target } = fixture()
    const { stream } = await open()
    target.sessions[0]?.die('exit code 1')
    expect(stream.ended).toBe(true)
  })

  it('accepts messages only from the owner of the stream', async () => {
    const { open } = fixture()
    const { post } = await open({ jwt: { iss: 'i', sub: 'alice' } })
    expect(await post(call, { facts: { jwt: { iss: 'i', sub: 'bob' } } })).toBe(404)
    expect(await post(call)).toBe(202)
  })

  it.each([
    ['no session', '', 422],
    ['an unknown session', '?sessionId=x', 404],
  ])('refuses a message for %s', async (_, query, status) => {
    const reply = await fixture().backend(mcpExchange('POST', { path, query, body: call }))
    expect(reply.status).toBe(status)
  })

  it('refuses other methods', async () => {
    const { backend } = fixture()
    expect((await backend(mcpExchange('DELETE', { path }))).status).toBe(405)
    expect((await backend(mcpExchange('GET', { path, headers: { accept: 'text/html' } }))).status).toBe(406)
  })

  it('has no more streams than there may be sessions', async () => {
    const { backend, open } = fixture()
    await open()
    await open()
    expect((await backend(mcpExchange('GET', { path }))).status).toBe(503)
  })
})
