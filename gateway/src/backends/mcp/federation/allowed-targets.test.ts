import { describe, expect, it } from 'vitest'
import {
  type Behaviour,
  collect,
  fakeTarget,
  fixtureContext,
  request,
  resultIn,
  settle,
} from '../../../../test/fixtures/mcp.ts'
import { messageOf } from '../message/json-rpc.ts'
import { federate } from './federation.ts'

const behaviours: Record<string, Behaviour> = {
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: {} }] }),
  'tools/call': () => ({ content: [] }),
  'tasks/get': () => ({ status: 'working' }),
  ping: () => ({}),
}

function fixture(names: readonly string[], allowed: readonly string[], prefixMode = 'conditional' as const) {
  const members = names.map((name) => fakeTarget(name, { behaviours }))
  const options = { prefixMode, failOpen: false, version: '1', initializeTimeoutMs: 1_000 }
  const federation = federate(members, options)
  if (federation === undefined) throw new Error('no targets')
  const session = federation.target.open()
  let refused = 0
  const targets = {
    permits: (name: string) => allowed.includes(name),
    refused: () => {
      refused += 1
    },
  }
  const context = fixtureContext({ targets })
  const ask = async (method: string, params = {}) => {
    const sink = collect()
    session.request(request(1, method, params), context, sink)
    await settle()
    return sink
  }
  const sent = (index: number) => members[index]?.sessions[0]?.requests.map(({ method }) => method) ?? []
  return { members, session, context, ask, sent, refused: () => refused }
}

describe('a target that the key does not allow', () => {
  const initialize = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 't', version: '1' },
  }

  it('does not start, and is absent from lists', async () => {
    const { ask, sent, members } = fixture(['a', 'b'], ['a'])
    expect(resultIn(await ask('initialize', initialize))).toMatchObject({ serverInfo: { name: 'tollgate' } })
    expect(resultIn(await ask('tools/list'))).toMatchObject({ tools: [{ name: 'a_echo' }] })
    await ask('ping')
    expect(sent(0)).toEqual(['initialize', 'tools/list', 'ping'])
    expect(sent(1)).toEqual([])
    expect(members[1]?.sessions[0]?.closed).toBe(1)
  })

  it.each([
    ['before a session of it', false],
    ['in a session that began with it', true],
  ])('is unknown in calls %s', async (_, isStarted) => {
    const { ask, sent, refused, session } = fixture(['a', 'b'], ['a'])
    if (!isStarted) await ask('initialize', initialize)
    else session.request(request(0, 'initialize', initialize), fixtureContext(), collect())
    await settle()
    const before = sent(1).length
    expect((await ask('tools/call', { name: 'b_echo' })).failure).toEqual({ kind: 'unknown', item: 'tool' })
    expect(sent(1)).toHaveLength(before)
    expect(refused()).toBe(1)
    expect(resultIn(await ask('tools/call', { name: 'a_echo' }))).toEqual({ content: [] })
  })

  it('is refused as a single target', async () => {
    const { ask, sent, session, context } = fixture(['a'], [])
    expect((await ask('tools/list')).failure).toMatchObject({ kind: 'refused' })
    expect((await ask('tools/call', { name: 'echo' })).failure).toEqual({ kind: 'unknown', item: 'tool' })
    expect(sent(0)).toEqual([])
    expect(await session.listen(context, collect())).toEqual({ kind: 'none' })
    const answer = messageOf({ jsonrpc: '2.0', id: 1, result: {} })
    expect(await session.deliver(answer, context)).toMatchObject({ kind: 'refused' })
  })

  it('receives no notification and opens no stream', async () => {
    const { session, members, context } = fixture(['a', 'b'], ['b'])
    await session.deliver(messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' }), context)
    await session.listen(context, collect())
    const [a, b] = members.map(({ sessions: [one] }) => [one?.delivered.length, one?.streams.length])
    expect(a).toEqual([0, 0])
    expect(b).toEqual([1, 1])
  })
})
