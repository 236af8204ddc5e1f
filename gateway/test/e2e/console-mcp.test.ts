import { describe, expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import type { Gateway } from '../support/gateway.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { programTarget, sdkTarget, startMcpGateway } from '../support/mcp-fixtures.ts'

/** Live lists of MCP servers, and the rules on them. */

type Target = { name: string; state: string; tools: number }
type Reply = {
  tools: Item[]
  resources: Item[]
  counts: Record<string, number>
  targets: Target[]
  problems: object[]
}

async function read(gateway: Gateway, path: string, body?: object) {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`, {
    ...(body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
  return { status: response.status, value: (await response.json()) as Reply }
}

type Item = {
  target: string
  name: string
  exposedName: string
  visible: boolean
  reason?: string
  rule?: object
}

describe('live lists', () => {
  it.each([1, 2])('come from a session at each server, with %d threads', async (workerThreads) => {
    const port = await freePort()
    const gateway = await startMcpGateway(
      () => ({
        targets: [
          sdkTarget('sdk'),
          { name: 'gone', mcp: { host: `http://127.0.0.1:${port}/mcp?key=secret` } },
          { name: 'missing', stdio: { cmd: '/no/such/program', args: ['--token', 'secret'] } },
        ],
        failureMode: 'failOpen',
      }),
      { config: { workerThreads } },
    )
    const details = await read(gateway, '/api/mcp/targets/sdk')
    expect(details).toMatchObject({
      status: 200,
      value: {
        ...{ name: 'sdk', transport: 'stdio', state: 'connected', protocolVersion: expect.any(String) },
        serverInfo: { name: expect.any(String) },
      },
    })
    expect(details.value.tools.length).toBe(details.value.counts['tools'])
    expect(details.value.tools[0]).toMatchObject({
      name: expect.any(String),
      inputSchema: { type: 'object' },
    })
    expect(details.value.resources.length).toBeGreaterThan(0)
    const { value } = await read(gateway, '/api/mcp/targets')
    expect(value.targets).toMatchObject([
      { name: 'sdk', state: 'connected', tools: details.value.tools.length },
      { name: 'gone', state: 'failed', address: `http://127.0.0.1:${port}/mcp` },
      { name: 'missing', state: 'failed', address: '/no/such/program' },
    ])
    expect(JSON.stringify(value)).not.toContain('secret')
    expect((await read(gateway, '/api/mcp/targets/unknown')).status).toBe(404)
  })

  it('of failing servers are problems of the state', async () => {
    const port = await freePort()
    const gateway = await startMcpGateway(() => ({
      targets: [programTarget('files'), { name: 'gone', mcp: { host: `http://127.0.0.1:${port}/mcp` } }],
      failureMode: 'failOpen',
    }))
    await connectClient('SDK 1', gateway.mcpUrl)
    const { value } = await read(gateway, '/api/state')
    expect(value.problems).toContainEqual(
      expect.objectContaining({ code: 'mcp_server_unreachable', link: '/mcp/servers/gone' }),
    )
  })
})

describe('rules on the lists', () => {
  it('name the rule that decides on each item', async () => {
    const gateway = await startMcpGateway(() => ({
      targets: [programTarget('files'), programTarget('other')],
      policies: {
        mcpAuthorization: {
          rules: [
            'jwt.sub == "ada" && mcp.tool.target == "files"',
            { deny: 'has(mcp.tool) && mcp.tool.name == "whoami" && jwt.level < 2' },
          ],
        },
      },
    }))
    const visible = async (body: object) => {
      const { value } = await read(gateway, '/api/mcp/visible', body)
      return value.tools.find(({ target, name }) => target === 'files' && name === 'whoami')
    }
    expect(await visible({ claims: { sub: 'ada', level: 2 } })).toMatchObject({
      ...{ exposedName: 'files_whoami', visible: true },
      rule: { rules: 'mcpAuthorization', index: 0, kind: 'allow', result: true },
    })
    expect(await visible({ claims: { sub: 'ada', level: 1 } })).toMatchObject({
      visible: false,
      rule: { index: 1, kind: 'deny', result: true },
    })
    expect(await visible({ claims: { sub: 'ada' } })).toMatchObject({
      visible: false,
      rule: { index: 1, kind: 'deny', error: expect.any(String) },
    })
    expect(await visible({ claims: { sub: 'bob', level: 2 } })).toMatchObject({
      visible: false,
      reason: 'no allow rule matches',
    })
    expect(await visible({ claims: { sub: 'ada', level: 2 }, allowedTargets: ['oth*'] })).toMatchObject({
      visible: false,
      reason: 'the key does not allow the server',
    })
    for (const body of [{ claim: {} }, { claims: [] }, { allowedTargets: [1] }, { headers: { a: 1 } }])
      expect((await read(gateway, '/api/mcp/visible', body)).status).toBe(400)
  })
})
