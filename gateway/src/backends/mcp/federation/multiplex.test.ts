import { describe, expect, it } from 'vitest'
import {
  type Behaviour,
  collect,
  type FakeSession,
  type FakeTarget,
  fakeTarget,
  fixtureContext,
  introduction,
  request,
  resultIn,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { Message, TargetFailure } from '../message/message.ts'
import { createMultiplex, type MultiplexOptions } from './multiplex.ts'

const down: TargetFailure = { kind: 'error', error: new GatewayError('upstream_connect', 'no connection') }
const downAt = (name: string) => ({
  kind: 'error',
  error: { code: 'upstream_connect', message: `target "${name}": no connection` },
})
const tools =
  (...names: string[]): Behaviour =>
  () => ({ tools: names.map((name) => ({ name, inputSchema: {} })) })

function fixture(targets: FakeTarget[], options: Partial<MultiplexOptions> = {}) {
  const target = createMultiplex(targets, { prefixed: true, failOpen: false, version: '1', ...options })
  const session = target.open()
  const own = targets.map((member) => {
    const [first] = member.sessions
    if (first === undefined) throw new Error('not opened')
    return first
  })
  const ask = async (message: Message) => {
    const sink = collect()
    session.request(message, fixtureContext(), sink)
    await settle()
    return sink
  }
  return { target, session, own, ask }
}

const first = (own: readonly FakeSession[], index = 0): FakeSession => {
  const session = own[index]
  if (session === undefined) throw new Error('no such session')
  return session
}

describe('a call to one of several targets', () => {
  const echo: Behaviour = (params) => ({ content: [{ type: 'text', text: JSON.stringify(params) }] })
  const two = () => [
    fakeTarget('a', { behaviours: { 'tools/call': echo } }),
    fakeTarget('b', { behaviours: { 'tools/call': echo } }),
  ]

  it('reaches the target of its prefix, of the target', async () => {
    const { ask, own } = fixture(two())
    const sink = await ask(request(1, 'tools/call', { name: 'b_a_x', arguments: { n: 1 } }))
    expect(first(own, 0).requests).toEqual([])
    expect(first(own, 1).requests).toEqual([
      request(1, 'tools/call', { name: 'a_x', arguments: { n: 1 } }).value,
    ])
    expect(sink.ended).toBe(true)
    expect(resultIn(sink)).toBeDefined()
  })

  it('reaches no target without an id: none would know the name, and others would learn it', async () => {
    const { session, own } = fixture(two())
    const message = messageOf({ jsonrpc: '2.0', method: 'tools/call', params: { name: 'b_x' } })
    expect(await session.deliver(message, fixtureContext())).toMatchObject({ kind: 'refused', status: 400 })
    expect([...first(own, 0).delivered, ...first(own, 1).delivered]).toEqual([])
  })

  it('changes nothing but the name, numbers too long to be read included', async () => {
    const seen: string[] = []
    const targets = [
      fakeTarget('a', { behaviours: { 'tools/call': (_params, _sink, { text }) => void seen.push(text) } }),
    ]
    const text =
      '{"jsonrpc":"2.0", "id":12345678901234567890,"method":"tools/call","params":{"name":"a_x", "arguments":{"n":1.0}}}'
    await fixture(targets).ask({ text, value: JSON.parse(text) })
    expect(seen).toEqual([text.replace('a_x', 'x')])
  })

  it.each(['x', 'c_x', '_x', 'A_x', 'a', ''])('finds no tool named %j', async (name) => {
    const { ask, own } = fixture(two())
    expect((await ask(request(1, 'tools/call', { name }))).failure).toEqual({ kind: 'unknown', item: 'tool' })
    expect(own.flatMap(({ requests }) => requests)).toEqual([])
  })

  it('finds no tool without a name', async () => {
    expect((await fixture(two()).ask(request(1, 'tools/call', { name: 7 }))).failure).toMatchObject({
      kind: 'unknown',
    })
  })

  it.each([
    ['prompts/get', { name: 'b_p' }, { name: 'p' }],
    ['resources/read', { uri: 'b+file:///x' }, { uri: 'file:///x' }],
    ['resources/subscribe', { uri: 'ui://b+x' }, { uri: 'ui://x' }],
    ['resources/unsubscribe', { uri: 'b+x' }, { uri: 'x' }],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'b_p' } },
      { ref: { type: 'ref/prompt', name: 'p' } },
    ],
    [
      'completion/complete',
      { ref: { type: 'ref/resource', uri: 'b+x' } },
      { ref: { type: 'ref/resource', uri: 'x' } },
    ],
    ['tasks/get', { taskId: 'b+t' }, { taskId: 't' }],
  ])('routes %s', async (method, params, own) => {
    const { ask, own: sessions } = fixture(two())
    await ask(request(1, method, params))
    expect(first(sessions, 0).requests).toEqual([])
    expect(first(sessions, 1).requests).toEqual([request(1, method, own).value])
  })

  it('renames resources and tasks in results, and nothing else', async () => {
    const targets = two()
    const behaviours = targets[1]?.behaviours ?? {}
    behaviours['tools/call'] = () => ({
      content: [
        { type: 'resource_link', uri: 'file:///x', name: 'x' },
        { type: 'resource', resource: { uri: 'file:///y', text: 'file:///y' } },
        { type: 'future', uri: 'file:///z' },
        'odd',
      ],
      structuredContent: { uri: 'file:///s' },
      task: { taskId: 't' },
    })
    expect(resultIn(await fixture(targets).ask(request(1, 'tools/call', { name: 'b_x' })))).toEqual({
      content: [
        { type: 'resource_link', uri: 'b+file:///x', name: 'x' },
        { type: 'resource', resource: { uri: 'b+file:///y', text: 'file:///y' } },
        { type: 'future', uri: 'file:///z' },
        'odd',
      ],
      structuredContent: { uri: 'file:///s' },
      task: { taskId: 'b+t' },
    })
    behaviours['resources/read'] = () => ({ contents: [{ uri: 'file:///x', text: '' }] })
    expect(
      resultIn(await fixture(targets).ask(request(1, 'resources/read', { uri: 'b+file:///x' }))),
    ).toEqual({
      contents: [{ uri: 'b+file:///x', text: '' }],
    })
  })

  it('fails and stops the target when its response is ambiguous', async () => {
    const targets = two()
    const behaviours = targets[1]?.behaviours ?? {}
    behaviours['tools/call'] = (_params, sink) => {
      setImmediate(() => {
        const text =
          '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource_link","uri":"a","uri":"b"}]}}'
        sink.message({ text, value: JSON.parse(text) })
        sink.end()
      })
      return undefined
    }
    const { ask, own } = fixture(targets)
    const sink = await ask(request(1, 'tools/call', { name: 'b_x' }))
    await settle()
    expect(sink).toMatchObject({
      messages: [],
      ended: false,
      failure: { kind: 'error', error: { code: 'upstream_invalid' } },
    })
    expect(first(own, 1).cancelled).toBe(1)
  })

  it('refuses methods without a target', async () => {
    expect((await fixture(two()).ask(request(1, 'vendor/method', {}))).messages).toMatchObject([
      { error: { code: -32601 } },
    ])
  })

  it('marks events with the target that can go on behind them', async () => {
    const targets = two()
    const behaviours = targets[1]?.behaviours ?? {}
    behaviours['tools/call'] = (_params, sink) => {
      sink.mark({ id: 'e1', retry: 3 })
      sink.end()
      return undefined
    }
    const { ask, session, own } = fixture(targets)
    const { marks } = await ask(request(1, 'tools/call', { name: 'b_x' }))
    expect(marks).toEqual([{ id: 'r1.e1', retry: 3 }])
    const sink = collect()
    await session.listen(fixtureContext({ lastEventId: 'r1.e1' }), sink)
    expect(first(own, 0).streams).toEqual([])
    expect(first(own, 1).streams[0]?.context.lastEventId).toBe('e1')
  })
})

describe('a merged list', () => {
  const paged =
    (pages: string[][]): Behaviour =>
    ({ cursor }) => {
      const page = cursor === undefined ? 0 : Number(cursor)
      const items = (pages[page] ?? []).map((name) => ({ name }))
      return page + 1 < pages.length ? { tools: items, nextCursor: String(page + 1) } : { tools: items }
    }

  it('has all pages of all targets under their names', async () => {
    const targets = [
      fakeTarget('a', { behaviours: { 'tools/list': paged([['x', 'y'], [], ['z']]) } }),
      fakeTarget('b', { behaviours: { 'tools/list': tools('x') } }),
    ]
    const result = resultIn(await fixture(targets).ask(request(1, 'tools/list')))
    expect(result).toEqual({
      tools: [{ name: 'a_x' }, { name: 'a_y' }, { name: 'a_z' }, { name: 'b_x', inputSchema: {} }],
    })
  })

  it('asks for further pages with ids of its own, as the server may know the first by its id', async () => {
    const targets = [fakeTarget('a', { behaviours: { 'tools/list': paged([['x'], ['y'], ['z']]) } })]
    const { ask, own } = fixture(targets)
    await Promise.all([ask(request(1, 'tools/list', { _meta: { p: 1 } })), ask(request(2, 'tools/list'))])
    const ids = first(own).requests.map(({ id }) => id)
    expect(new Set(ids).size).toBe(6)
    expect(first(own).requests.map(({ params }) => params)).toContainEqual({ _meta: { p: 1 }, cursor: '1' })
  })

  it('goes on behind a cursor where a target has more pages than are read at once', async () => {
    const pages = Array.from({ length: 150 }, (_, index) => [`t${index}`])
    const targets = [
      fakeTarget('a', { behaviours: { 'tools/list': paged(pages) } }),
      fakeTarget('b', { behaviours: { 'tools/list': tools('x') } }),
    ]
    const { ask } = fixture(targets)
    const names: unknown[] = []
    let cursor: string | undefined
    for (let round = 0; round < 10; round += 1) {
      const result = resultIn(
        await ask(request(round, 'tools/list', cursor === undefined ? {} : { cursor })),
      ) as {
        tools: JsonObject[]
        nextCursor?: string
      }
      names.push(...result.tools.map(({ name }) => name))
      cursor = result.nextCursor
      if (cursor === undefined) break
    }
    expect(cursor).toBeUndefined()
    expect(names).toHaveLength(151)
    expect(new Set(names).size).toBe(151)
  })

  it('does not follow a cursor that leads to itself', async () => {
    const circular: Behaviour = () => ({ tools: [{ name: 'x' }], nextCursor: 'same' })
    const { ask, own } = fixture([fakeTarget('a', { behaviours: { 'tools/list': circular } })])
    expect(resultIn(await ask(request(1, 'tools/list')))).toEqual({
      tools: [{ name: 'a_x' }, { name: 'a_x' }],
    })
    expect(first(own).requests).toHaveLength(2)
  })

  it.each(['x', 'bm9uc2Vuc2U', 7, null])('refuses the made-up cursor %j', async (cursor) => {
    const { ask, own } = fixture([fakeTarget('a', { behaviours: { 'tools/list': tools('x') } })])
    expect((await ask(request(1, 'tools/list', { cursor }))).messages).toMatchObject([
      { error: { code: -32602 } },
    ])
    expect(first(own).requests).toEqual([])
  })

  it('has nothing of a target that does not know the method', async () => {
    const targets = [
      fakeTarget('a', { behaviours: { 'prompts/list': () => ({ prompts: [{ name: 'p' }] }) } }),
      fakeTarget('b'),
    ]
    expect(resultIn(await fixture(targets).ask(request(1, 'prompts/list')))).toEqual({
      prompts: [{ name: 'a_p' }],
    })
    expect(resultIn(await fixture([fakeTarget('a')]).ask(request(1, 'prompts/list')))).toEqual({
      prompts: [],
    })
  })

  it('names resources, templates and tasks of their targets, and widgets of tools', async () => {
    const behaviours = {
      'resources/list': () => ({ resources: [{ uri: 'file:///x', name: 'x' }] }),
      'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'file:///{x}', name: 'x' }] }),
      'tasks/list': () => ({ tasks: [{ taskId: 't' }] }),
      'tools/list': () => ({
        tools: [{ name: 'x', _meta: { ui: { resourceUri: 'ui://w' }, 'ui/resourceUri': 'ui://w' } }],
      }),
    }
    const { ask } = fixture([fakeTarget('a', { behaviours })])
    expect(resultIn(await ask(request(1, 'resources/list')))).toEqual({
      resources: [{ uri: 'a+file:///x', name: 'x' }],
    })
    expect(resultIn(await ask(request(2, 'resources/templates/list')))).toEqual({
      resourceTemplates: [{ uriTemplate: 'a+file:///{x}', name: 'x' }],
    })
    expect(resultIn(await ask(request(3, 'tasks/list')))).toEqual({ tasks: [{ taskId: 'a+t' }] })
    expect(resultIn(await ask(request(4, 'tools/list')))).toEqual({
      tools: [{ name: 'a_x', _meta: { ui: { resourceUri: 'ui://a+w' }, 'ui/resourceUri': 'ui://a+w' } }],
    })
  })

  it('fails with the first target that fails, or leaves it out', async () => {
    const targets = () => [
      fakeTarget('a', { behaviours: { 'tools/list': tools('x') } }),
      fakeTarget('b', { behaviours: { 'tools/list': () => down } }),
    ]
    expect((await fixture(targets()).ask(request(1, 'tools/list'))).failure).toMatchObject(downAt('b'))
    const open = await fixture(targets(), { failOpen: true }).ask(request(1, 'tools/list'))
    expect(resultIn(open)).toMatchObject({ tools: [{ name: 'a_x' }] })
  })

  it('fails under failOpen when all targets fail', async () => {
    const targets = [fakeTarget('a', { behaviours: { 'tools/list': () => down } })]
    expect((await fixture(targets, { failOpen: true }).ask(request(1, 'tools/list'))).failure).toMatchObject(
      downAt('a'),
    )
  })

  it('passes on a JSON-RPC error of a target', async () => {
    const targets = [
      fakeTarget('a', { behaviours: { 'tools/list': () => ({ error: { code: -1, message: 'no' } }) } }),
    ]
    expect((await fixture(targets).ask(request(1, 'tools/list'))).messages).toMatchObject([
      { id: 1, error: { code: -1 } },
    ])
  })
})

describe('names without prefix', () => {
  const named = (name: string, ...names: string[]) =>
    fakeTarget(name, {
      behaviours: { 'tools/list': tools(...names), 'tools/call': () => ({ content: [], by: name }) },
    })
  const options = { prefixed: false }

  it('belong to the first target that has them', async () => {
    const { ask } = fixture([named('a', 'x', 'y'), named('b', 'y', 'z')], options)
    const result = resultIn(await ask(request(1, 'tools/list')))
    expect(result).toMatchObject({ tools: [{ name: 'x' }, { name: 'y' }, { name: 'z' }] })
    expect(resultIn(await ask(request(2, 'tools/call', { name: 'y' })))).toMatchObject({ by: 'a' })
    expect(resultIn(await ask(request(3, 'tools/call', { name: 'z' })))).toMatchObject({ by: 'b' })
  })

  it('are looked for when they have not been listed', async () => {
    const { ask } = fixture([named('a', 'x'), named('b', 'z')], options)
    expect(resultIn(await ask(request(1, 'tools/call', { name: 'z' })))).toMatchObject({ by: 'b' })
    expect((await ask(request(2, 'tools/call', { name: 'w' }))).failure).toEqual({
      kind: 'unknown',
      item: 'tool',
    })
  })
})

describe('the beginning of a session at several targets', () => {
  it('introduces them as one', async () => {
    const { ask, own } = fixture([fakeTarget('a'), fakeTarget('b')])
    const sink = await ask(request(0, 'initialize', { protocolVersion: '2025-11-25' }))
    expect(resultIn(sink)).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'tollgate', version: '1' },
    })
    for (const session of own) expect(session.requests).toHaveLength(1)
  })

  it('fails with the first target that fails', async () => {
    const { ask } = fixture([fakeTarget('a'), fakeTarget('b', { behaviours: { initialize: () => down } })])
    expect((await ask(request(0, 'initialize'))).failure).toMatchObject(downAt('b'))
  })

  it('continues without failing targets under failOpen', async () => {
    const targets = [
      fakeTarget('a', { behaviours: { 'tools/list': tools('x') } }),
      fakeTarget('b', { behaviours: { initialize: () => down } }),
    ]
    const { ask, own, session } = fixture(targets, { failOpen: true })
    expect(resultIn(await ask(request(0, 'initialize')))).toBeDefined()
    expect(first(own, 1).closed).toBe(1)
    expect(resultIn(await ask(request(1, 'tools/list')))).toMatchObject({ tools: [{ name: 'a_x' }] })
    expect((await ask(request(2, 'tools/call', { name: 'b_x' }))).failure).toMatchObject({ kind: 'error' })
    expect(session.state()).toEqual({
      p: [
        ['a', { n: 'a' }],
        ['b', null],
      ],
    })
  })

  it('forwards messages before the responses', async () => {
    const chatty: Behaviour = (_params, sink) => {
      sink.message(messageOf({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'hello' } }))
      return introduction('a')
    }
    const sink = await fixture([fakeTarget('a', { behaviours: { initialize: chatty } })]).ask(
      request(0, 'initialize'),
    )
    expect(sink.messages.map(({ method }) => method)).toEqual(['notifications/message', undefined])
  })
})

describe('ping and log levels', () => {
  it('go to all targets, of which not all have to know them', async () => {
    const targets = [fakeTarget('a', { behaviours: { 'logging/setLevel': () => ({}) } }), fakeTarget('b')]
    const { ask, own } = fixture(targets)
    expect(resultIn(await ask(request(1, 'logging/setLevel', { level: 'info' })))).toEqual({})
    expect(first(own, 1).requests).toHaveLength(1)
    expect((await ask(request(2, 'ping'))).messages).toMatchObject([{ error: { code: -32601 } }])
  })

  it('fail with a target that fails', async () => {
    const targets = () => [
      fakeTarget('a', { behaviours: { ping: () => ({}) } }),
      fakeTarget('b', { behaviours: { ping: () => down } }),
    ]
    expect((await fixture(targets()).ask(request(1, 'ping'))).failure).toMatchObject(downAt('b'))
    expect(resultIn(await fixture(targets(), { failOpen: true }).ask(request(1, 'ping')))).toEqual({})
  })
})

describe('requests of servers to the client', () => {
  const sampling: Behaviour = (_params, sink) => {
    sink.message(
      messageOf({
        jsonrpc: '2.0',
        id: 1,
        method: 'sampling/createMessage',
        params: { _meta: { progressToken: 't' } },
      }),
    )
    return undefined
  }
  const two = () => ['a', 'b'].map((name) => fakeTarget(name, { behaviours: { 'tools/call': sampling } }))

  it('keep apart by their ids, and the answers find back', async () => {
    const { ask, session, own } = fixture(two())
    const one = await ask(request(1, 'tools/call', { name: 'a_x' }))
    const other = await ask(request(2, 'tools/call', { name: 'b_x' }))
    const [idOfA, idOfB] = [one.messages[0]?.['id'], other.messages[0]?.['id']]
    expect(idOfA).not.toBe(idOfB)
    expect(
      await session.deliver(
        messageOf({ jsonrpc: '2.0', id: idOfB ?? null, result: { ok: 1 } }),
        fixtureContext(),
      ),
    ).toBeUndefined()
    expect(first(own, 0).delivered).toEqual([])
    expect(first(own, 1).delivered).toEqual([{ jsonrpc: '2.0', id: 1, result: { ok: 1 } }])
  })

  it('keep apart by their progress tokens, and the progress finds back', async () => {
    const { ask, session, own } = fixture(two())
    const sink = await ask(request(1, 'tools/call', { name: 'b_x' }))
    const params = sink.messages[0]?.['params'] as { _meta: { progressToken: string } }
    const progress = { progressToken: params._meta.progressToken, progress: 1 }
    await session.deliver(
      messageOf({ jsonrpc: '2.0', method: 'notifications/progress', params: progress }),
      fixtureContext(),
    )
    expect(first(own, 0).delivered).toEqual([])
    expect(first(own, 1).delivered).toMatchObject([{ params: { progressToken: 't', progress: 1 } }])
  })

  it.each([1, '1', '0:{}', '5:1', null])('are not answered by the made-up id %j', async (id) => {
    const { session, own } = fixture(two())
    const failure = await session.deliver(messageOf({ jsonrpc: '2.0', id, result: {} }), fixtureContext())
    expect(failure).toMatchObject({ kind: 'refused', status: 400 })
    expect(own.flatMap(({ delivered }) => delivered)).toEqual([])
  })

  it('are cancelled under the id the client knows', async () => {
    const cancelling: Behaviour = (_params, sink) => {
      sink.message(messageOf({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }))
      return {}
    }
    const { ask } = fixture([fakeTarget('a', { behaviours: { 'tools/call': cancelling } })])
    const sink = await ask(request(1, 'tools/call', { name: 'a_x' }))
    expect(sink.messages[0]).toMatchObject({ params: { requestId: '0:1' } })
  })
})

describe('notifications of the client', () => {
  const cancelled = (requestId: number) =>
    messageOf({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
  const waiting = () =>
    ['a', 'b'].map((name) => fakeTarget(name, { behaviours: { 'tools/call': () => undefined } }))

  it('go to all targets', async () => {
    const { session, own } = fixture(waiting())
    const initialized = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect(await session.deliver(initialized, fixtureContext())).toBeUndefined()
    for (const { delivered } of own) expect(delivered).toEqual([initialized.value])
  })

  it('about a request go to the target that has it, as long as it has', async () => {
    const { ask, session, own } = fixture(waiting())
    await ask(request(5, 'tools/call', { name: 'b_x' }))
    await session.deliver(cancelled(5), fixtureContext())
    expect(own.map(({ delivered }) => delivered.length)).toEqual([0, 1])
    first(own, 1).sinks[0]?.end()
    await session.deliver(cancelled(5), fixtureContext())
    expect(own.map(({ delivered }) => delivered.length)).toEqual([1, 2])
  })

  it('fail with a target that does not take them, or do without it', async () => {
    const targets = waiting()
    const refusing = targets[1]
    if (refusing) refusing.refusals['notifications/x'] = down
    const message = messageOf({ jsonrpc: '2.0', method: 'notifications/x' })
    expect(await fixture(targets).session.deliver(message, fixtureContext())).toMatchObject(downAt('b'))
    expect(
      await fixture(targets, { failOpen: true }).session.deliver(message, fixtureContext()),
    ).toBeUndefined()
  })
})

describe('the streams of several targets', () => {
  const notification = (uri: string) =>
    messageOf({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })

  it('are one stream, which knows where each of them stands', async () => {
    const { session, own, target } = fixture([fakeTarget('a'), fakeTarget('b')])
    const sink = collect()
    expect((await session.listen(fixtureContext(), sink)).kind).toBe('flow')
    first(own, 0).streams[0]?.sink.message(notification('x'), { id: '1' })
    first(own, 1).streams[0]?.sink.message(notification('x'), { id: '7' })
    expect(sink.messages).toMatchObject([{ params: { uri: 'a+x' } }, { params: { uri: 'b+x' } }])
    const lastEventId = sink.marks[1]?.id ?? ''
    const state = session.state() ?? {}
    const again = target.resume(state)
    await again?.listen(fixtureContext({ lastEventId }), collect())
    expect(first(own, 0).streams).toHaveLength(1)
    for (const [index, id] of ['1', '7'].entries()) {
      const resumed = [fakeTarget('a'), fakeTarget('b')]
      await createMultiplex(resumed, { prefixed: true, failOpen: false, version: '1' })
        .resume(state)
        ?.listen(fixtureContext({ lastEventId }), collect())
      expect(resumed[index]?.sessions[0]?.streams[0]?.context.lastEventId).toBe(id)
    }
  })

  it('end with the first of them, so that the client opens all of them anew', async () => {
    const { session, own } = fixture([fakeTarget('a'), fakeTarget('b')])
    const sink = collect()
    await session.listen(fixtureContext(), sink)
    first(own, 0).streams[0]?.sink.end()
    expect(sink.ended).toBe(true)
    expect(first(own, 1).cancelled).toBe(1)
    first(own, 1).streams[0]?.sink.message(notification('x'))
    expect(sink.messages).toEqual([])
  })

  it('do without targets that have none', async () => {
    const targets = [fakeTarget('a'), fakeTarget('b')]
    const [, quiet] = targets
    if (quiet) quiet.listening = 'none'
    const { session, own } = fixture(targets)
    const sink = collect()
    expect((await session.listen(fixtureContext(), sink)).kind).toBe('flow')
    first(own, 0).streams[0]?.sink.message(notification('x'))
    expect(sink.messages).toHaveLength(1)
  })

  it('are none where no target has one', async () => {
    const targets = [fakeTarget('a'), fakeTarget('b')]
    for (const target of targets) target.listening = 'none'
    expect(await fixture(targets).session.listen(fixtureContext(), collect())).toEqual({ kind: 'none' })
  })

  it('fail with a target that is lost', async () => {
    const targets = [fakeTarget('a'), fakeTarget('b')]
    const [, lost] = targets
    if (lost) lost.listenFailure = { kind: 'ended', reason: 'gone' }
    const { session, own } = fixture(targets)
    expect(await session.listen(fixtureContext(), collect())).toMatchObject({
      kind: 'failed',
      failure: { kind: 'ended' },
    })
    expect(first(own, 0).cancelled).toBe(1)
  })
})

describe('a session at several targets', () => {
  it('goes on in another process only when all its parts do, for the same targets', () => {
    const targets = [fakeTarget('a'), fakeTarget('b')]
    const { session, target } = fixture(targets)
    const state = session.state() ?? {}
    expect(target.resume(state)).toBeDefined()
    const others = [[fakeTarget('a')], [fakeTarget('a'), fakeTarget('c')]]
    for (const other of others) {
      expect(
        createMultiplex(other, { prefixed: true, failOpen: false, version: '1' }).resume(state),
      ).toBeUndefined()
    }
    const added = [fakeTarget('c'), fakeTarget('b'), fakeTarget('a')]
    const options = { prefixed: true, failOpen: false, version: '1' }
    expect(createMultiplex(added, options).resume(state)?.state()).toEqual(state)
    const swapped = {
      p: [
        ['b', { n: 'a' }],
        ['a', { n: 'b' }],
      ],
    }
    expect(target.resume(swapped)).toBeUndefined()
    for (const odd of [
      {},
      { p: 1 },
      { p: ['a', 'b'] },
      {
        p: [
          ['a', 1],
          ['b', 2],
        ],
      },
    ]) {
      expect(target.resume(odd)).toBeUndefined()
    }
    expect(fixture([fakeTarget('a'), fakeTarget('b', { pinned: true })]).session.state()).toBeUndefined()
  })

  it('ends with a target, except under failOpen', () => {
    const reasons: string[] = []
    const closed = fixture([fakeTarget('a'), fakeTarget('b')])
    closed.session.onTerminated((reason) => reasons.push(reason))
    first(closed.own, 1).die('exit code 1')
    expect(reasons).toEqual(['exit code 1'])
    const open = fixture([fakeTarget('a'), fakeTarget('b')], { failOpen: true })
    open.session.onTerminated((reason) => reasons.push(reason))
    first(open.own, 1).die('exit code 2')
    expect(reasons).toHaveLength(1)
    first(open.own, 0).die('exit code 3')
    expect(reasons).toEqual(['exit code 1', 'exit code 3'])
  })

  it('closes all its parts', async () => {
    const { session, own } = fixture([fakeTarget('a'), fakeTarget('b')])
    await session.close()
    expect(own.map(({ closed }) => closed)).toEqual([1, 1])
  })

  it('begins only where a single request goes', () => {
    const targets = [fakeTarget('a'), fakeTarget('b')]
    const target = createMultiplex(targets, { prefixed: true, failOpen: false, version: '1' })
    target.openFor?.(request(1, 'tools/call', { name: 'b_x' }))
    expect(targets.map(({ sessions }) => sessions.length)).toEqual([0, 1])
    target.openFor?.(request(1, 'tools/list'))
    expect(targets.map(({ sessions }) => sessions.length)).toEqual([1, 2])
  })

  it('cancels all that belongs to a request', async () => {
    const targets = ['a', 'b'].map((name) =>
      fakeTarget(name, { behaviours: { 'tools/list': () => undefined } }),
    )
    const { session, own } = fixture(targets)
    const sink = collect()
    const flow = session.request(request(1, 'tools/list'), fixtureContext(), sink)
    await settle()
    flow.cancel()
    await settle()
    expect(own.map(({ cancelled }) => cancelled)).toEqual([1, 1])
    expect(sink).toMatchObject({ messages: [], ended: false, failure: undefined })
  })
})
