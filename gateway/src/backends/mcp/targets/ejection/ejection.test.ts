import { describe, expect, it } from 'vitest'
import {
  collect,
  fakeTarget,
  fixtureContext,
  request,
  resultIn,
  settle,
} from '../../../../../test/fixtures/mcp.ts'
import { fixtureContext as pipelineContext } from '../../../../../test/fixtures/pipeline.ts'
import { member } from '../../../../../test/support/mock-server.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { Reply, Send } from '../../../../net/http-client/send.ts'
import { compileHealth, type Health } from '../../../../upstream/health.ts'
import { federate } from '../../federation/federation.ts'
import { messageOf } from '../../message/json-rpc.ts'
import type { TargetSession } from '../target.ts'
import { withEjection, withOutcomes } from './ejection.ts'

function fixture() {
  const context = pipelineContext()
  const healthOf = (place: string): Health => {
    const health = compileHealth({ eviction: { duration: '10s' } }, place, context)
    if (health === undefined) throw new Error('no health')
    return health
  }
  return { context, healthOf }
}

function federationOf(names: readonly string[], failOpen = false) {
  const { context, healthOf } = fixture()
  const targets = names.map((name) =>
    fakeTarget(name, {
      behaviours: { 'tools/list': () => ({ tools: [{ name: 'search', inputSchema: {} }] }) },
    }),
  )
  const health = names.map(healthOf)
  const members = targets.map((target, at) => withEjection(target, health[at], context))
  const options = { prefixMode: 'conditional', failOpen, version: '1', initializeTimeoutMs: 1_000 } as const
  const federation = federate(members, options)
  if (federation === undefined) throw new Error('no targets')
  const ask = async (session: TargetSession, method: string, params = {}) => {
    const sink = collect()
    session.request(request(1, method, params), fixtureContext(), sink)
    await settle()
    return sink
  }
  return { context, targets, health, ask, open: () => federation.target.open() }
}

const initialized = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })
const toolNames = (sink: ReturnType<typeof collect>) => {
  const tools = member(resultIn(sink), 'tools')
  return Array.isArray(tools) ? tools.map((tool) => member(tool, 'name')) : []
}

describe('an ejected target', () => {
  it('is left out of lists until the end of its ejection', async () => {
    const { context, health, ask, open } = federationOf(['a', 'b'])
    const session = open()
    await ask(session, 'initialize')
    expect(toolNames(await ask(session, 'tools/list'))).toEqual(['a_search', 'b_search'])
    health[1]?.failed()
    expect(toolNames(await ask(session, 'tools/list'))).toEqual(['a_search'])
    context.clock.advance(10_001)
    expect(toolNames(await ask(session, 'tools/list'))).toEqual(['a_search', 'b_search'])
  })

  it('fails calls without a request to it', async () => {
    const { targets, health, ask, open } = federationOf(['a', 'b'])
    const session = open()
    await ask(session, 'initialize')
    health[1]?.failed()
    const sink = await ask(session, 'tools/call', { name: 'b_search' })
    const message = 'target "b" is ejected after failed requests: retry in 10 s'
    expect(sink.failure).toMatchObject({ kind: 'error', error: { code: 'upstream_connect', message } })
    expect(targets[1]?.sessions[0]?.requests.map(({ method }) => method)).toEqual(['initialize'])
  })

  it('is not part of sessions that start during the ejection', async () => {
    const { targets, health, ask, open } = federationOf(['a', 'b'])
    health[1]?.failed()
    const session = open()
    expect(resultIn(await ask(session, 'initialize'))).toBeDefined()
    expect(targets[1]?.sessions[0]).toMatchObject({ requests: [], closed: 1 })
    const sink = await ask(session, 'tools/call', { name: 'b_search' })
    expect(sink.failure).toMatchObject({ error: { message: 'target "b" is not available' } })
  })

  it.each([['a'], ['a', 'b']])('fails requests if no other target remains: %s %s', async (...names) => {
    const { health, ask, open } = federationOf(names)
    for (const one of health) one.failed()
    const sink = await ask(open(), 'initialize')
    expect(sink.failure).toMatchObject({
      error: { message: expect.stringContaining('target "a" is ejected') },
    })
  })

  it('receives notifications and responses of clients', async () => {
    const { targets, health, ask, open } = federationOf(['a', 'b'])
    const session = open()
    await ask(session, 'initialize')
    health[1]?.failed()
    await session.deliver(initialized, fixtureContext())
    expect(targets[1]?.sessions[0]?.delivered).toHaveLength(1)
  })
})

describe('the health of a target', () => {
  const reply = (status: number): Reply => ({ status, headers: {}, body: undefined })
  const outgoing = {} as Parameters<Send>[0]

  it.each([
    ['a response with status 500', () => Promise.resolve(reply(500)), true],
    ['a response with status 401', () => Promise.resolve(reply(401)), false],
    ['a failed connection', () => Promise.reject(new GatewayError('upstream_connect', 'refused')), true],
    ['a cancelled request', () => Promise.reject(new GatewayError('request_aborted', 'closed')), false],
  ])('changes after %s as documented', async (_, send, isEjected) => {
    const health = fixture().healthOf('a')
    await withOutcomes(send, health)(outgoing).catch(() => undefined)
    expect(health.isEjected()).toBe(isEjected)
  })
})
