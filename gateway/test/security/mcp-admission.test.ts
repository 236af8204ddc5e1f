import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { initializeMessage, openSession, post } from '../support/mcp-raw.ts'
import { metricValue } from '../support/metrics.ts'
import { member } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// Resources occupied by MCP clients are bounded: sessions, and the programs of stdio targets.

const serve = (limits: object, more: GatewayConfig['mcp'] = {}) =>
  startGateway({ config: { limits }, mcp: { targets: [programTarget('files')], ...more } })

const inUse = async (gateway: Gateway, resource: string) =>
  metricValue(await gateway.metrics(), 'tollgate_admission_in_use', { resource })

/** Sends the head and the body of a POST from an address of this machine. */
async function send(port: number, body: string, localAddress = '127.0.0.1', more = ''): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  endAfter('test', () => {
    socket.destroy()
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const fields = [
    'POST /mcp HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    'accept: application/json, text/event-stream',
  ]
  socket.write(`${fields.join('\r\n')}\r\n${more}content-length: ${body.length}\r\n\r\n${body}`)
  return socket
}

describe('programs', () => {
  it('of one address above its bound are refused with 429, and others are served', async () => {
    const gateway = await serve({ maxMcpProgramsPerClient: 3 })
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => post(gateway.mcpUrl, initializeMessage)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, ...Array(7).fill(429)])
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.messages[0]).toMatchObject({
      id: 0,
      error: { message: 'too many MCP programs of this client: at most 3 at a time' },
    })
    expect(await inUse(gateway, 'mcp_programs')).toBe(3)
    const other = await send(gateway.mcpPort, JSON.stringify(initializeMessage), '127.0.0.2')
    expect(String((await once(other, 'data'))[0])).toContain('200 OK')
    const refusals = { resource: 'mcp_programs_per_client' }
    expect(metricValue(await gateway.metrics(), 'tollgate_admission_refusals_total', refusals)).toBe(7)
  })

  it('above the bound in total are refused with 503, until one has ended', async () => {
    const gateway = await serve({ maxMcpPrograms: 1 })
    const session = await openSession(gateway.mcpUrl)
    const refused = await post(gateway.mcpUrl, initializeMessage)
    expect([refused.status, member(refused.messages[0], 'error', 'message')]).toEqual([
      503,
      'too many MCP programs: the gateway has room for 1',
    ])
    await session.end()
    await until('the place is free', async () => (await inUse(gateway, 'mcp_programs')) === 0)
    await openSession(gateway.mcpUrl)
  })

  it('of requests in stateless mode are bounded as well', async () => {
    const gateway = await serve({ maxMcpPrograms: 1 }, { statefulMode: 'stateless' })
    const call = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'slow', arguments: { ms: 300 } },
    }
    const answers = await Promise.all([1, 2, 3].map(() => post(gateway.mcpUrl, call)))
    expect(answers.filter(({ messages }) => 'error' in (messages.at(-1) ?? {})).length).toBe(2)
    await until('the place is free', async () => (await inUse(gateway, 'mcp_programs')) === 0)
  })
})

describe('sessions', () => {
  it('of one address above its bound are refused before anything is started', async () => {
    const gateway = await serve({ maxMcpSessionsPerClient: 2 })
    await openSession(gateway.mcpUrl)
    await openSession(gateway.mcpUrl)
    const refused = await post(gateway.mcpUrl, initializeMessage)
    expect([refused.status, member(refused.messages[0], 'error', 'message')]).toEqual([
      429,
      'too many MCP sessions of this client: at most 2 at a time',
    ])
    expect(await inUse(gateway, 'mcp_programs')).toBe(2)
    expect(await inUse(gateway, 'mcp_sessions')).toBe(2)
  })

  it('that are begun at once are bounded as well', async () => {
    const gateway = await serve({ maxMcpSessions: 4 })
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => post(gateway.mcpUrl, initializeMessage)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4)
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(8)
  })

  it('whose client leaves before the answer end at once, with their programs', async () => {
    const slow = { name: 'slow', stdio: { cmd: 'sh', args: ['-c', 'read -r line; sleep 30'] } }
    const gateway = await serve({}, { targets: [slow] })
    const sockets = await Promise.all(
      Array.from({ length: 20 }, () => send(gateway.mcpPort, JSON.stringify(initializeMessage))),
    )
    await until('the programs are started', async () => (await inUse(gateway, 'mcp_programs')) === 20)
    for (const socket of sockets) socket.destroy()
    await until('all programs have ended', async () => (await inUse(gateway, 'mcp_programs')) === 0, 20_000)
    expect(await inUse(gateway, 'mcp_sessions')).toBe(0)
  })
})

describe('bodies', () => {
  it('of requests without a session are small', async () => {
    const gateway = await serve({})
    const large = JSON.stringify({ ...initializeMessage, padding: 'x'.repeat(100_000) })
    expect((await post(gateway.mcpUrl, large)).status).toBe(413)
  })

  it('of requests with an unknown session are not read', async () => {
    const gateway = await serve({})
    const socket = await send(gateway.mcpPort, '', '127.0.0.1', 'mcp-session-id: made-up\r\n')
    expect(String((await once(socket, 'data'))[0])).toContain('404 Not Found')
    const waiting = connect({ host: '127.0.0.1', port: gateway.mcpPort })
    endAfter('test', () => {
      waiting.destroy()
    })
    // The answer comes though not a byte of the body does.
    waiting.write(
      `POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: */*\r\nmcp-session-id: x\r\ncontent-length: 10000000\r\n\r\n`,
    )
    expect(String((await once(waiting, 'data'))[0])).toContain('404 Not Found')
  })
})
