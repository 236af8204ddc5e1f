import { describe, expect, it } from 'vitest'
import {
  collect,
  fakeTarget,
  fixtureContext,
  request,
  resultIn,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { member } from '../../../../test/support/mock-server.ts'
import type { McpItem } from '../../../pipeline/mcp/mcp-item.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { MessageSink } from '../message/message.ts'
import type { CallContext, Permissions } from '../targets/target.ts'
import { withPermissions } from './permissions.ts'

const behaviours = {
  'tools/list': () => ({ tools: [{ name: 'open', n: 1 }, { name: 'secret' }, { noName: true }], extra: 1 }),
  'resources/templates/list': () => ({
    resourceTemplates: [{ uriTemplate: 'a:{x}' }, { uriTemplate: 'secret' }],
  }),
  'tools/call': () => ({ content: [] }),
  'prompts/get': () => ({ messages: [] }),
  'resources/read': () => ({ contents: [] }),
  'completion/complete': () => ({ completion: { values: [] } }),
  'vendor/x': () => ({}),
  ping: () => ({}),
}

function fixture(permissions?: Permissions) {
  const target = fakeTarget('a', { behaviours })
  const session = withPermissions(target).open()
  const ask = async (method: string, params = {}) => {
    const sink = collect()
    session.request(request(1, method, params), fixtureContext(permissions && { permissions }), sink)
    await settle()
    return sink
  }
  return { ask, asked: () => target.sessions[0]?.requests ?? [] }
}

function recording(): { items: [McpItem, string][]; permissions: Permissions } {
  const items: [McpItem, string][] = []
  const permissions: Permissions = {
    permits(item, at) {
      items.push([item, at])
      return item.name !== 'secret'
    },
    permitsMethod: (method) => method === 'ping' || method.endsWith('/list'),
  }
  return { items, permissions }
}

describe('rules about tools, prompts and resources', () => {
  it('remove denied items and items without a name from lists', async () => {
    const { permissions } = recording()
    const sink = await fixture(permissions).ask('tools/list')
    expect(resultIn(sink)).toEqual({ tools: [{ name: 'open', n: 1 }], extra: 1 })
    expect(JSON.parse(sink.texts[0] ?? '')).toEqual(sink.messages[0])
    expect(resultIn(await fixture(permissions).ask('resources/templates/list'))).toEqual({
      resourceTemplates: [{ uriTemplate: 'a:{x}' }],
    })
  })

  it.each([
    ['tools/call', { name: 'secret' }, 'tool'],
    ['prompts/get', { name: 'secret' }, 'prompt'],
    ['resources/read', { uri: 'secret' }, 'resource'],
    ['resources/subscribe', { uri: 'secret' }, 'resource'],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'secret' } }, 'prompt'],
    ['completion/complete', { ref: { type: 'ref/resource', uri: 'secret' } }, 'resource'],
    ['completion/complete', { ref: { type: 'ref/other', name: 'open' } }, 'prompt'],
    ['tools/call', {}, 'tool'],
    ['tools/call', { name: ['open'] }, 'tool'],
  ])('report a denied item as unknown in %s', async (method, params, item) => {
    const { ask, asked } = fixture(recording().permissions)
    expect((await ask(method, params)).failure).toEqual({ kind: 'unknown', item })
    expect(asked()).toEqual([])
  })

  it.each([
    ['tools/call', { name: 'secret' }, { kind: 'unknown', item: 'tool' }],
    ['resources/read', { uri: 'secret' }, { kind: 'unknown', item: 'resource' }],
    ['vendor/x', {}, { kind: 'refused', status: 400 }],
  ])('keep %s from a target that would do it without an id', async (method, params, failure) => {
    const target = fakeTarget('a', { behaviours })
    const session = withPermissions(target).open()
    const context = fixtureContext({ permissions: recording().permissions })
    expect(await session.deliver(messageOf({ jsonrpc: '2.0', method, params }), context)).toMatchObject(
      failure,
    )
    expect(target.sessions[0]?.delivered).toEqual([])
    expect(await session.deliver(messageOf({ jsonrpc: '2.0', id: 1, result: {} }), context)).toBeUndefined()
    expect(target.sessions[0]?.delivered).toHaveLength(1)
  })

  it('see the target, the own name and the arguments of a call', async () => {
    const { items, permissions } = recording()
    await fixture(permissions).ask('tools/call', { name: 'open', arguments: { x: 1 } })
    await fixture(permissions).ask('tools/list')
    expect(items.slice(0, 2)).toEqual([
      [{ method: 'tools/call', kind: 'tool', name: 'open', target: 'a', arguments: { x: 1 } }, 'call'],
      [{ method: 'tools/list', kind: 'tool', name: 'open', target: 'a' }, 'list'],
    ])
  })

  it('permit allowed calls', async () => {
    const { ask } = fixture(recording().permissions)
    expect(resultIn(await ask('tools/call', { name: 'open' }))).toEqual({ content: [] })
    expect(resultIn(await ask('ping'))).toEqual({})
  })

  it('are asked about methods that name nothing', async () => {
    const { ask, asked } = fixture(recording().permissions)
    expect((await ask('vendor/x')).failure).toMatchObject({ kind: 'refused', code: -32601 })
    expect(asked()).toEqual([])
  })

  it('may refuse a list as a whole', async () => {
    const { ask, asked } = fixture({ permits: () => true, permitsMethod: () => false })
    expect((await ask('tools/list')).failure).toMatchObject({ kind: 'refused', code: -32601 })
    expect(asked()).toEqual([])
  })

  it.each([
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"}]},"result":1}',
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"}],"tools":[]}}',
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret","name":"open"}]}}',
  ])('pass no list on that can be read in two ways: %s', async (text) => {
    const list = (_: object, sink: MessageSink) => {
      sink.message({ text, value: JSON.parse(text) })
      sink.end()
      return undefined
    }
    const session = withPermissions(fakeTarget('a', { behaviours: { 'tools/list': list } })).open()
    const sink = collect()
    const context = fixtureContext({ permissions: recording().permissions })
    session.request(request(1, 'tools/list'), context, sink)
    expect(sink.failure).toMatchObject({ kind: 'error', error: { code: 'upstream_invalid' } })
    expect(sink.texts).toEqual([])
  })

  it('cost nothing where there are none', async () => {
    const sink = await fixture().ask('tools/list')
    expect(resultIn(sink)).toEqual(behaviours['tools/list']())
  })
})

describe('a cacheable result', () => {
  const result = { tools: [{ name: 'open' }], ttlMs: 1_000, cacheScope: 'public' }
  const scopeWith = async (context: Partial<CallContext>) => {
    const target = fakeTarget('a', { behaviours: { 'tools/list': () => result } })
    const sink = collect()
    withPermissions(target).open().request(request(1, 'tools/list'), fixtureContext(context), sink)
    await settle()
    expect(sink.messages).toMatchObject([{ id: 1, result: { ...result, cacheScope: expect.anything() } }])
    expect(JSON.parse(sink.texts[0] ?? '')).toEqual(sink.messages[0])
    return member(sink.messages[0], 'result', 'cacheScope')
  }

  it('is private where rules, guards or keys decide for one client', async () => {
    const { permissions } = recording()
    const checks = {
      request: () => undefined,
      checksResult: () => false,
      result: () => Promise.reject(new Error('unexpected')),
    }
    expect(await scopeWith({ permissions })).toBe('private')
    expect(await scopeWith({ checks })).toBe('private')
    expect(await scopeWith({ targets: { permits: () => true, refused() {} } })).toBe('private')
    expect(await scopeWith({})).toBe('public')
  })
})

describe('rules on a subscription', () => {
  const permissions: Permissions = {
    permits: ({ name, method }) => name !== 'secret' && !(method === 'subscriptions/listen' && name === 'x'),
    permitsMethod: (method) => method !== 'prompts/list',
  }
  const listen = (notifications: object, rules: Partial<CallContext> = { permissions }) => {
    const target = fakeTarget('a', { behaviours: { 'subscriptions/listen': () => undefined } })
    const sink = collect()
    const message = request(1, 'subscriptions/listen', JSON.parse(JSON.stringify({ notifications })))
    withPermissions(target).open().request(message, fixtureContext(rules), sink)
    const [sent] = target.sessions[0]?.requests ?? []
    const send = (method: string, params = {}) =>
      target.sessions[0]?.sinks[0]?.message(messageOf({ jsonrpc: '2.0', method, params }))
    return { sink, send, sent: member(sent, 'params', 'notifications') }
  }

  it('remove denied resources and lists, and unknown members', () => {
    const { sent, send, sink } = listen({
      ...{ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: false, other: ['secret'] },
      resourceSubscriptions: ['open', 'secret', 'x', 1],
    })
    expect(sent).toEqual({ toolsListChanged: true, resourceSubscriptions: ['open'] })
    send('notifications/subscriptions/acknowledged', { notifications: sent })
    send('notifications/resources/updated', { uri: 'secret' })
    send('notifications/resources/updated', {})
    send('notifications/resources/updated', { uri: 'open' })
    send('notifications/resources/updated', { uri: 'open/part' })
    send('notifications/prompts/list_changed')
    send('notifications/tools/list_changed')
    expect(sink.messages.map(({ method, params }) => [method, member(params, 'uri')])).toEqual([
      ['notifications/subscriptions/acknowledged', undefined],
      ['notifications/resources/updated', 'open'],
      ['notifications/resources/updated', 'open/part'],
      ['notifications/tools/list_changed', undefined],
    ])
  })

  it('acknowledge nothing if they deny all of it', () => {
    const { sent, sink } = listen({ resourceSubscriptions: ['secret'] })
    expect(sent).toBeUndefined()
    expect(sink.messages).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged', params: { notifications: {} } },
      { id: 1, result: { resultType: 'complete' } },
    ])
    expect(sink.ended).toBe(true)
  })

  it('may deny the method', () => {
    const rules = { permissions: { ...permissions, permitsMethod: () => false } }
    expect(listen({ toolsListChanged: true }, rules).sink.failure).toMatchObject({ code: -32601 })
  })

  it('change nothing without rules', () => {
    const all = { promptsListChanged: true, other: 1, resourceSubscriptions: ['secret'] }
    const { sent, send, sink } = listen(all, {})
    expect([sent, send('notifications/resources/updated', { uri: 'secret' })]).toEqual([all, true])
    expect(sink.messages).toHaveLength(1)
  })
})
