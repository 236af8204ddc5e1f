import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { type FaultyServer, startFaultyServer } from '../support/mcp-faulty-server.ts'
import { openSession, type RawSession } from '../support/mcp-raw.ts'

const tool = (name: string) => ({ name, arguments: {} })
const hostOf = ({ url }: FaultyServer) => new URL(url).host

function configOf(port: number, hosts: readonly string[]): GatewayConfig {
  const target = { name: 'tools', mcp: { backend: '/tools', path: '/mcp' } }
  return {
    gateways: { web: { port } },
    routes: [{ gateways: 'web', backends: [{ mcp: { targets: [target] } }] }],
    backends: [{ name: 'tools', endpoints: hosts.map((host) => ({ host })) }],
  }
}

/** Opens sessions until both servers have one. */
async function openAtBoth(url: string, [one, two]: readonly [FaultyServer, FaultyServer]) {
  const sessions: { session: RawSession; at: FaultyServer }[] = []
  while (one.sessions.size === 0 || two.sessions.size === 0) {
    const before = one.sessions.size
    const session = await openSession(url)
    sessions.push({ session, at: one.sessions.size > before ? one : two })
  }
  const at = (server: FaultyServer) => {
    const found = sessions.find((entry) => entry.at === server)
    if (found === undefined) throw new Error('no session')
    return found.session
  }
  return { ofOne: at(one), ofTwo: at(two) }
}

async function start(): Promise<{
  gateway: Gateway
  port: number
  url: string
  servers: readonly [FaultyServer, FaultyServer]
}> {
  const servers = await Promise.all([startFaultyServer(), startFaultyServer()])
  const port = await freePort()
  const gateway = await startGateway(configOf(port, servers.map(hostOf)))
  return { gateway, port, url: `http://127.0.0.1:${port}/mcp`, servers }
}

describe('an MCP target with endpoints', () => {
  it('keeps a session at one server, and spreads sessions', async () => {
    const { url, servers } = await start()
    const { ofOne, ofTwo } = await openAtBoth(url, servers)
    // Each server answers sessions of its own only.
    for (const session of [ofOne, ofTwo, ofOne, ofTwo]) {
      expect(await session.request('tools/call', tool('x'))).toEqual({
        content: [{ type: 'text', text: 'x' }],
      })
    }
  })

  it('ends the sessions of a removed server once it is gone, and only those', async () => {
    const { gateway, port, url, servers } = await start()
    const [, two] = servers
    const { ofOne, ofTwo } = await openAtBoth(url, servers)
    const lost = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: tool('dies before the head') }
    expect((await ofOne.send(lost)).status).toBe(200)
    await gateway.reload(configOf(port, [hostOf(two)]))
    // A server that terminates gracefully finishes its sessions.
    expect(await ofOne.request('tools/call', tool('x'))).toHaveProperty('content')
    expect((await ofOne.send(lost)).status).toBe(404)
    expect(await ofTwo.request('tools/call', tool('x'))).toHaveProperty('content')
    const next = await openSession(url)
    expect(await next.request('tools/call', tool('x'))).toHaveProperty('content')
  })

  it('refuses sessions without endpoints', async () => {
    const { gateway, port, url } = await start()
    await gateway.reload(configOf(port, []))
    await expect(openSession(url)).rejects.toThrow(/target \\?"tools\\?" has no endpoints/)
  })
})
