import { describe, expect, it } from 'vitest'
import {
  type Behaviour,
  type Collected,
  collect,
  fakeTarget,
  fixtureContext,
  request,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { TargetFailure } from '../message/message.ts'
import { createMultiplex } from './multiplex.ts'

const context = fixtureContext({
  protocolVersion: '2026-07-28',
  headers: { 'mcp-method': 'x', 'mcp-name': 'one_read' },
})
const silent = { behaviours: {}, sessionless: true }

function world({ failOpen = false, options = [silent, silent] as Parameters<typeof fakeTarget>[1][] } = {}) {
  const targets = options.map((one, index) => fakeTarget(['one', 'two', 'three'][index] ?? '', one))
  const combined = createMultiplex(targets, { prefixed: true, failOpen, version: '1' })
  const session = combined.open()
  const ask = async (method: string, params: JsonObject = {}): Promise<Collected> => {
    const sink = collect()
    session.request(request(7, method, params), context, sink)
    for (let turn = 0; turn < 5; turn += 1) await settle()
    return sink
  }
  const from = (index: number, value: JsonObject) =>
    targets[index]?.sessions[0]?.sinks[0]?.message(messageOf({ jsonrpc: '2.0', ...value }))
  return { targets, combined, ask, from }
}

/** A target without a behaviour of `subscriptions/listen` waits for messages of the test. */
const listening = () => ({
  sessionless: true,
  behaviours: { 'subscriptions/listen': () => undefined },
})

const ack = (notifications: JsonObject): JsonObject => ({
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications },
})
const updated = (uri: string): JsonObject => ({ method: 'notifications/resources/updated', params: { uri } })

describe('a subscription at several targets', () => {
  const wanted = {
    notifications: { toolsListChanged: true, resourceSubscriptions: ['one+a://1', 'two+b://2', 'none'] },
  }

  it('is acknowledged once, with the names of clients', async () => {
    const { ask, from, targets } = world({ options: [listening(), listening()] })
    const sink = await ask('subscriptions/listen', wanted)
    const sent = targets.map(({ sessions }) => sessions[0]?.requests[0]?.['params'])
    expect(sent).toEqual([
      { notifications: { toolsListChanged: true, resourceSubscriptions: ['a://1'] } },
      { notifications: { toolsListChanged: true, resourceSubscriptions: ['b://2'] } },
    ])
    from(0, ack({ toolsListChanged: true, resourceSubscriptions: ['a://1'] }))
    from(0, updated('a://1'))
    expect(sink.messages).toEqual([])
    from(1, ack({ resourceSubscriptions: ['b://2'] }))
    from(1, updated('b://2'))
    expect(sink.messages).toMatchObject([
      {
        params: {
          notifications: { toolsListChanged: true, resourceSubscriptions: ['one+a://1', 'two+b://2'] },
        },
      },
      { params: { uri: 'one+a://1' } },
      { params: { uri: 'two+b://2' } },
    ])
    expect(sink.messages[0]).toMatchObject({
      params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 7 } },
    })
    from(1, { id: 7, result: {} })
    expect(sink.messages.at(-1)).toMatchObject({ id: 7, result: { resultType: 'complete' } })
    expect(sink.ended).toBe(true)
    expect(targets[0]?.sessions[0]?.cancelled).toBe(1)
  })

  it('continues after the end of a target that accepted nothing', async () => {
    const { ask, from } = world({ options: [listening(), listening()] })
    const sink = await ask('subscriptions/listen', wanted)
    from(0, ack({}))
    from(0, { id: 7, result: {} })
    from(1, ack({ toolsListChanged: true }))
    expect([sink.messages.length, sink.ended]).toEqual([1, false])
    from(1, { id: 7, result: {} })
    expect(sink.ended).toBe(true)
  })

  it.each([true, false])('with a target that refuses, failOpen %s', async (failOpen) => {
    const { ask, from } = world({ failOpen, options: [listening(), listening()] })
    const sink = await ask('subscriptions/listen', wanted)
    from(0, { id: 7, error: { code: -32603, message: 'no' } })
    from(1, ack({ toolsListChanged: true }))
    expect(sink.messages[0]).toMatchObject(failOpen ? { params: {} } : { error: { message: 'no' } })
    expect(sink.ended).toBe(!failOpen)
  })

  const unknownMethod = { jsonrpc: '2.0', id: 7, error: { code: -32601, message: 'Method not found' } }
  const missing = (): TargetFailure => ({
    kind: 'reply',
    reply: {
      status: 404,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(unknownMethod)),
    },
  })

  it('continues without targets that have no subscriptions', async () => {
    const without = { sessionless: true, behaviours: { 'subscriptions/listen': missing } }
    const { ask, from } = world({ options: [without, silent, listening()] })
    const sink = await ask('subscriptions/listen', { notifications: { toolsListChanged: true } })
    expect(sink.messages).toEqual([])
    from(2, ack({ toolsListChanged: true }))
    from(2, { method: 'notifications/tools/list_changed' })
    expect(sink.messages).toHaveLength(2)
    const none = world({ options: [without, without] })
    const failed = await none.ask('subscriptions/listen', { notifications: { toolsListChanged: true } })
    expect(failed.failure).toMatchObject({ reply: { status: 404 } })
  })

  it('contains what the client has requested and a target has acknowledged', async () => {
    const { ask, from, targets } = world({ options: [listening(), listening()] })
    const tasks = { taskIds: ['one+t1', 'two+t2'], resourceSubscriptions: ['one+a://1'] }
    const sink = await ask('subscriptions/listen', { notifications: tasks })
    expect(targets.map(({ sessions }) => sessions[0]?.requests[0]?.['params'])).toEqual([
      { notifications: { taskIds: ['t1'], resourceSubscriptions: ['a://1'] } },
      { notifications: { taskIds: ['t2'], resourceSubscriptions: [] } },
    ])
    from(0, updated('a://1'))
    from(0, ack({ taskIds: ['t1', 't9'], resourceSubscriptions: ['a://1'], toolsListChanged: true }))
    from(1, ack({ taskIds: ['t2'] }))
    expect(sink.messages).toMatchObject([
      { params: { notifications: { taskIds: ['one+t1', 'two+t2'], resourceSubscriptions: ['one+a://1'] } } },
    ])
    expect(sink.messages[0]).not.toHaveProperty('params.notifications.toolsListChanged')
    from(0, { method: 'notifications/tools/list_changed' })
    from(1, updated('b://2'))
    for (const method of ['notifications/progress', 'notifications/message']) from(0, { method, params: {} })
    expect(sink.messages).toHaveLength(1)
    from(1, { method: 'notifications/tasks', params: { taskId: 't2', status: 'working' } })
    expect(sink.messages[1]).toMatchObject({ params: { taskId: 'two+t2' } })
    from(1, { method: 'notifications/cancelled', params: { requestId: 7 } })
    expect(sink.messages[2]).toMatchObject({ id: 7, result: { resultType: 'complete' } })
    expect(sink.ended).toBe(true)
  })

  it('queues early notifications up to a limit, and pauses their target before', async () => {
    const { ask, from, targets } = world({ options: [listening(), listening()] })
    const sink = await ask('subscriptions/listen', wanted)
    from(0, ack({ resourceSubscriptions: ['a://1'] }))
    const large = { method: 'notifications/x', params: { text: 'x'.repeat(600_000) } }
    expect(from(0, updated('a://1'))).toBe(true)
    expect(from(0, large)).toBe(false)
    from(1, ack({}))
    expect(sink.messages).toHaveLength(3)
    expect(targets[0]?.sessions[0]?.resumed).toBe(1)
    expect(from(0, large)).toBe(true)

    const other = world({ failOpen: true, options: [listening(), listening()] })
    const failed = await other.ask('subscriptions/listen', wanted)
    other.from(1, ack({ toolsListChanged: true }))
    other.from(1, large)
    other.from(1, large)
    expect(failed.failure).toMatchObject({
      error: {
        code: 'upstream_too_large',
        message:
          'target "two": more than 100 notifications or 1048576 characters before all targets acknowledged the subscription',
      },
    })
    expect(other.targets.map(({ sessions }) => sessions[0]?.cancelled)).toEqual([1, 1])
  })

  it('of nothing ends at once', async () => {
    const { ask, targets } = world()
    const sink = await ask('subscriptions/listen', { notifications: { resourceSubscriptions: ['none'] } })
    expect([sink.messages.length, sink.ended]).toEqual([2, true])
    expect(targets.map(({ sessions }) => sessions[0]?.requests)).toEqual([[], []])
  })
})

describe('a request without a session', () => {
  const discovery = (versions: string[], ttlMs: number) => () => ({
    ...{ supportedVersions: versions, capabilities: { tools: {} }, ttlMs, cacheScope: 'public' },
  })

  it('discovers the common versions of all targets', async () => {
    const of = (versions: string[], ttlMs: number) => ({
      sessionless: true,
      behaviours: { 'server/discover': discovery(versions, ttlMs) },
    })
    const { ask } = world({ options: [of(['2026-07-28', '2027-01-01'], 900), of(['2026-07-28'], 500)] })
    expect((await ask('server/discover')).messages[0]).toMatchObject({
      result: {
        supportedVersions: ['2026-07-28'],
        ttlMs: 500,
        cacheScope: 'private',
        resultType: 'complete',
      },
    })
    const without = world({ options: [of(['2026-07-28'], 0), of(['2027-01-01'], 0)] })
    expect((await without.ask('server/discover')).failure).toMatchObject({ kind: 'refused', code: -32022 })
  })

  it('fails as at the target without the revision, so that clients begin a session', async () => {
    const { ask } = world({
      failOpen: true,
      options: [{ behaviours: { 'server/discover': discovery(['2026-07-28'], 0) } }, silent],
    })
    expect((await ask('server/discover')).messages[0]).toMatchObject({ error: { code: -32601 } })
  })

  const replies = (status: number) => ({
    sessionless: true,
    behaviours: {
      'server/discover': () => ({ kind: 'reply' as const, reply: { status, headers: {}, body: undefined } }),
    },
  })

  it.each([401, 403, 429, 500, 503])('skips a target with status %d under failOpen', async (status) => {
    const working = { behaviours: { 'server/discover': discovery(['2026-07-28'], 0) } }
    const open = world({ failOpen: true, options: [replies(status), working] })
    expect((await open.ask('server/discover')).messages[0]).toMatchObject({
      result: { supportedVersions: ['2026-07-28'] },
    })
    const closed = world({ options: [replies(status), working] })
    expect((await closed.ask('server/discover')).failure).toMatchObject({ reply: { status } })
  })

  it.each([400, 404, 405])('fails with status %d of an older target under failOpen', async (status) => {
    const working = { behaviours: { 'server/discover': discovery(['2026-07-28'], 0) } }
    const { ask } = world({ failOpen: true, options: [working, replies(status)] })
    expect((await ask('server/discover')).failure).toMatchObject({ reply: { status } })
  })

  it('has merged lists with the shortest lifetime', async () => {
    const list = (name: string, ttlMs: number) => ({
      sessionless: true,
      behaviours: { 'tools/list': () => ({ tools: [{ name }], ttlMs }) },
    })
    const { ask } = world({ options: [list('a', 900), list('b', 300)] })
    expect((await ask('tools/list')).messages[0]).toMatchObject({
      result: { tools: [{ name: 'one_a' }, { name: 'two_b' }], ttlMs: 300, cacheScope: 'private' },
    })
  })

  it('has lists of the targets with the method, and the shortest lifetime of their pages', async () => {
    const pages = (): Record<string, Behaviour> => ({
      'prompts/list': ({ cursor }) =>
        cursor === undefined
          ? { prompts: [{ name: 'a' }], nextCursor: '2', ttlMs: 100 }
          : { prompts: [{ name: 'b' }], ttlMs: 900 },
    })
    const without: Record<string, Behaviour> = {
      'prompts/list': (_, __, { value: { id = null } }) => ({
        kind: 'reply',
        reply: {
          ...{ status: 404, headers: { 'content-type': 'application/json' } },
          body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })),
        },
      }),
    }
    const { ask } = world({
      options: [
        { sessionless: true, behaviours: pages() },
        { sessionless: true, behaviours: without },
      ],
    })
    expect((await ask('prompts/list')).messages[0]).toMatchObject({
      result: { prompts: [{ name: 'one_a' }, { name: 'one_b' }], ttlMs: 100 },
    })
  })

  it('has lists without a lifetime under failOpen while a target fails', async () => {
    const list = { sessionless: true, behaviours: { 'tools/list': () => ({ tools: [], ttlMs: 900 }) } }
    const failing = { sessionless: true, behaviours: { 'tools/list': () => unavailable } }
    const { ask } = world({ failOpen: true, options: [list, failing] })
    expect((await ask('tools/list')).messages[0]).toMatchObject({ result: { tools: [], ttlMs: 0 } })
  })

  const unavailable: TargetFailure = { kind: 'reply', reply: { status: 503, headers: {}, body: undefined } }

  it('reaches its target with the name of the target, in the header too', async () => {
    const { ask, targets, combined } = world({
      options: [{ sessionless: true, behaviours: { 'tools/call': () => ({ content: [] }) } }, silent],
    })
    expect(combined.sessionless).toBe(true)
    await ask('tools/call', { name: 'one_read', arguments: {} })
    const session = targets[0]?.sessions[0]
    expect(session?.requests[0]).toMatchObject({ params: { name: 'read' } })
    expect(session?.contexts[0]?.headers['mcp-name']).toBe('read')
  })

  it.each(['ping', 'initialize', 'resources/subscribe', 'x'])('refuses %s', async (method) => {
    const { ask } = world()
    expect((await ask(method)).failure).toMatchObject({ kind: 'refused', status: 404, code: -32601 })
  })
})
