import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
import { startIdentityProvider } from '../support/mcp-identity-provider.ts'
import { idpAShape } from '../support/mcp-idp-a.ts'
import { openSession, type RawSession } from '../support/mcp-raw.ts'
import { member } from '../support/mock-server.ts'

// Authorization of single tools, prompts and resources.

type Rule = string | Record<string, string>

async function serve(rules: Rule[], targets = [programTarget('files'), programTarget('other')]) {
  const provider = await startIdentityProvider(idpAShape({}))
  const gateway = await startMcpGateway((url) => ({
    targets,
    policies: {
      mcpAuthentication: { issuer: provider.issuer, audiences: [url], provider: { idpA: {} } },
      mcpAuthorization: { rules },
    },
  }))
  const as = async (claims: Record<string, unknown>) => ({
    authorization: `Bearer ${await provider.sign({ aud: gateway.mcpUrl, ...claims })}`,
  })
  return { gateway, as, url: gateway.mcpUrl }
}

async function callWith(session: RawSession, name: string, args = {}, headers: Record<string, string> = {}) {
  const params = { name, arguments: args }
  const answer = await session.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, headers)
  return {
    status: answer.status,
    text: member(answer.messages.at(-1), 'result', 'content', 0, 'text'),
    error: member(answer.messages.at(-1), 'error'),
  }
}

/** A refused call: a JSON-RPC error, because client libraries end their session at an HTTP error. */
const denied = { status: 200, text: undefined, error: { code: -32602 } }

describe('mcpAuthorization', () => {
  it('sees integers beyond 2^53 in arguments as they were written', async () => {
    const deny = 'has(mcp.tool) && mcp.tool.arguments.n == 9007199254740993'
    const { url, as } = await serve([{ deny }, 'true'], [programTarget('files')])
    const session = await openSession(url, await as({}))
    const called = async (n: string) => {
      const params = `{"name":"whoami","arguments":{"n":${n}}}`
      return (await session.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)).text
    }
    expect(await called('9007199254740993')).toContain('Unknown tool')
    expect(await called('9007199254740992')).toContain('files')
  })

  it('hides denied tools, and answers a call as for an unknown tool', async () => {
    const { url, as } = await serve([
      'has(mcp.tool) && mcp.tool.name == "whoami" && mcp.tool.target == "files"',
      'has(mcp.prompt) && mcp.prompt.target == "other"',
      'has(mcp.resource) && mcp.resource.name == "mem://other/0"',
    ])
    const client = await connectClient('SDK 2', url, { headers: await as({}) })
    expect(await client.tools()).toEqual(['files_whoami'])
    expect(await client.prompts()).toEqual(['other_prompt-0'])
    expect(await client.resources()).toEqual(['other+mem://other/0'])

    const session = await openSession(url, await as({}))
    expect(await callWith(session, 'files_whoami')).toMatchObject({ status: 200, text: 'files' })
    const hidden = await callWith(session, 'files_pid')
    expect(hidden).toMatchObject({
      status: 200,
      error: { code: -32602, message: 'Unknown tool: files_pid' },
    })
    const absent = await callWith(session, 'files_nothing')
    expect(JSON.stringify(absent).replaceAll('nothing', 'pid')).toBe(JSON.stringify(hidden))
    expect(await session.request('resources/read', { uri: 'files+mem://files/0' })).toMatchObject({
      code: -32602,
    })
    expect(await session.request('prompts/get', { name: 'files_prompt-0' })).toMatchObject({ code: -32602 })
  })

  it('asks with the claims of each request, in one session', async () => {
    const { url, as } = await serve([
      '"admin" in jwt.roles',
      'has(mcp.tool) && mcp.tool.name == "whoami" && "reader" in jwt.roles',
    ])
    const session = await openSession(url, await as({ roles: ['reader'] }))
    const admin = await as({ roles: ['admin'] })
    expect(await callWith(session, 'files_pid')).toMatchObject(denied)
    expect(await callWith(session, 'files_pid', {}, admin)).toMatchObject({ status: 200 })
    expect(await callWith(session, 'files_whoami')).toMatchObject({ status: 200 })
    expect(await callWith(session, 'files_whoami', {}, await as({}))).toMatchObject(denied)
  })

  it('lists a tool whose rule reads arguments, and decides each call by its own', async () => {
    const { url, as } = await serve(
      [
        { require: 'has(mcp.tool)' },
        'mcp.tool.name == "args" && mcp.tool.arguments.path.startsWith("/public/")',
      ],
      [programTarget('files')],
    )
    const client = await connectClient('SDK 1', url, { headers: await as({}) })
    expect(await client.tools()).toEqual(['args'])
    const session = await openSession(url, await as({}))
    expect(await callWith(session, 'args', { path: '/public/a' })).toMatchObject({ status: 200 })
    for (const args of [{ path: '/etc/passwd' }, {}, { path: 5 }, { Path: '/public/a' }]) {
      expect(await callWith(session, 'args', args)).toMatchObject(denied)
    }
  })

  it('denies every other path to a denied tool', async () => {
    const { url, as } = await serve([{ deny: 'has(mcp.tool) && mcp.tool.name == "pid"' }])
    const session = await openSession(url, await as({}))
    expect(await callWith(session, 'files_whoami')).toMatchObject({ status: 200 })
    for (const name of ['files_pid', 'files_ pid', 'files_PID', 'pid', 'files_files_pid']) {
      expect((await callWith(session, name)).text).toBe(undefined)
    }
    // A batch, a second name, a misspelt name: the rule and the target see the same name.
    const bodies = [
      '[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_pid"}}]',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files_whoami","name":"files_pid"}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"files_pid"}}',
      '{"jsonrpc":"2.0","id":1,"method":"tools\\u002fcall","params":{"name":"files_pid"}}',
      '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"files_pid"}}',
      '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"name":"files_pid"}}',
    ]
    for (const body of bodies) {
      const answer = await session.send(body)
      expect(answer.messages.some((message) => 'result' in message)).toBe(false)
    }
  })

  it('logs the rule that refused', async () => {
    const { gateway, url, as } = await serve([{ deny: 'has(mcp.tool) && mcp.tool.name == "pid"' }])
    const session = await openSession(url, await as({}))
    await callWith(session, 'files_pid')
    const lines = await gateway.logged(3)
    expect(lines.map((line) => line['refusedBy'])).toContain('mcp-authorization: deny rule 1')
  })
})

describe('authorization', () => {
  it('decides on every request before anything is started', async () => {
    const gateway = await startGateway({
      mcp: {
        targets: [programTarget('files')],
        policies: {
          authorization: {
            rules: [{ deny: 'request.headers["x-blocked"] == "yes"' }, 'request.path == "/mcp"'],
          },
        },
      },
    })
    const session = await openSession(gateway.mcpUrl).catch((error: Error) => error.message)
    // A rule that cannot be evaluated, here for want of the header, denies.
    expect(session).toContain('403 authorization failed')
    const allowed = await openSession(gateway.mcpUrl, { 'x-blocked': 'no' })
    const blocked = await allowed.send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'x-blocked': 'yes' })
    expect([blocked.status, blocked.text]).toEqual([403, 'authorization failed'])
  })

  it('limits requests with a policy of its own', async () => {
    const gateway = await startGateway({
      mcp: {
        targets: [programTarget('files')],
        policies: { localRateLimit: [{ requests: 4, unit: 'Hours' }] },
      },
    })
    const session = await openSession(gateway.mcpUrl)
    const statuses: number[] = []
    for (let index = 0; index < 4; index += 1) {
      statuses.push((await session.send({ jsonrpc: '2.0', id: index, method: 'ping' })).status)
    }
    expect(statuses).toEqual([200, 200, 429, 429])
  })
})
