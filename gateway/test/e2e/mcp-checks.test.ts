import { describe, expect, it } from 'vitest'
import { startFaultyServer } from '../support/mcp-faulty-server.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { openSession, type RawSession } from '../support/mcp-raw.ts'
import { member } from '../support/mock-server.ts'
import { startRateLimitService } from '../support/rate-limit-service.ts'

/** Limits of single messages, and trace context. */

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const limitOf = (requests: number, key: string) => ({ requests, unit: 'Hours', key })

/** Code of the error of a call, or `ok`. */
async function call(session: RawSession, name: string): Promise<unknown> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }
  const { messages } = await session.send(message)
  return member(messages.at(-1), 'error', 'code') ?? 'ok'
}

describe('limits of tools', () => {
  it.each([1, 2])('count calls by name over %d threads, and no other messages', async (workerThreads) => {
    const server = await startFaultyServer()
    const gateway = await startMcpGateway(
      () => ({
        policies: { localRateLimit: [limitOf(2, 'mcp.tool.name')] },
        targets: [{ name: 'tools', mcp: { host: `${server.url}/mcp` } }],
      }),
      { config: { workerThreads } },
    )
    const session = await openSession(gateway.mcpUrl)
    const results = []
    for (const name of ['a', 'a', 'a', 'b']) results.push(await call(session, name))
    expect(results).toEqual(['ok', 'ok', -32003, 'ok'])
    for (let count = 0; count < 4; count += 1) await session.request('prompts/list')
    const answer = await session.send({
      ...{ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'a' } },
    })
    expect(answer.messages.at(-1)).toMatchObject({
      id: 7,
      error: { message: expect.stringMatching(/^rate limit exceeded: retry after \d+ s$/) },
    })
    // Two messages of the start of the session, five calls, four lists.
    expect(await gateway.logged(11)).toContainEqual(
      expect.objectContaining({
        mcpTarget: 'tools',
        mcpItem: 'a',
        refusedBy: 'rate-limit: mcp: requests per hour by mcp.tool.name',
      }),
    )
    expect(await gateway.metrics()).toMatch(/tollgate_\w*limit\w*\{[^}]*mcp\.tool\.name/)
  })

  it('count by target and arguments behind a federation', async () => {
    const key = 'mcp.tool.target + string(mcp.tool.arguments.team)'
    const gateway = await startMcpGateway(() => ({
      policies: { localRateLimit: [limitOf(1, key)] },
      targets: [programTarget('one'), programTarget('two')],
    }))
    const session = await openSession(gateway.mcpUrl)
    const codes = async (names: readonly string[], team: string) => {
      const found = []
      for (const name of names) {
        const params = { name, arguments: { team } }
        const { messages } = await session.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
        found.push(member(messages.at(-1), 'error', 'code') ?? 'ok')
      }
      return found
    }
    expect(await codes(['one_whoami', 'two_whoami', 'one_whoami'], 'red')).toEqual(['ok', 'ok', -32003])
    expect(await codes(['one_whoami', 'one_whoami'], 'blue')).toEqual(['ok', -32003])
  })

  it('at a service have the tool as descriptor', async () => {
    const limiter = await startRateLimitService()
    const gateway = await startMcpGateway(() => ({
      policies: {
        remoteRateLimit: {
          host: limiter.host,
          domain: 'tools',
          descriptors: [{ entries: [{ key: 'tool', value: 'mcp.tool.name' }] }],
        },
      },
      targets: [programTarget('files')],
    }))
    const session = await openSession(gateway.mcpUrl)
    expect(await call(session, 'whoami')).toBe('ok')
    expect(limiter.seen).toMatchObject([
      { domain: 'tools', descriptors: [{ entries: [{ key: 'tool', value: 'whoami' }] }] },
    ])
  })
})

describe('a trace context', () => {
  it('of the request reaches targets in headers and in the message', async () => {
    const server = await startFaultyServer()
    const gateway = await startMcpGateway(() => ({
      targets: [{ name: 'tools', mcp: { host: `${server.url}/mcp` } }, programTarget('files')],
    }))
    const session = await openSession(gateway.mcpUrl)
    const params = { name: 'tools_x', arguments: {} }
    const ask = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    await session.send(ask, { traceparent, baggage: 'user=alice' })
    await session.send({ ...ask, params: { ...params, _meta: { traceparent } } })
    const calls = server.seen.filter(({ json }) => member(json, 'method') === 'tools/call')
    expect(calls.map(({ headers }) => headers['traceparent'])).toEqual([traceparent, traceparent])
    expect(calls.map(({ json }) => member(json, 'params', '_meta'))).toEqual([
      { traceparent, baggage: 'user=alice' },
      { traceparent },
    ])
  })
})
