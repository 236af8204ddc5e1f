import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { type HttpTarget, serveHttp } from '../conformance/target/http.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { connectClient, generations } from '../support/mcp-clients.ts'
import { programTarget, sdkTarget } from '../support/mcp-fixtures.ts'
import { connectMcpRemote } from '../support/mcp-remote.ts'
import { packageFile, runProgram } from '../support/run-program.ts'
import { until } from '../support/wait.ts'

// Official clients as black boxes, against targets of every kind.

type Served = { gateway: Gateway; prefix: string; uriPrefix: string }

async function httpTarget(): Promise<HttpTarget> {
  const target = await serveHttp()
  endAfter('file', target.close)
  return target
}

const kinds: Record<string, () => Promise<Served>> = {
  'a stdio target': async () => ({
    gateway: await startGateway({ mcp: { targets: [sdkTarget('sdk')] } }, { lifetime: 'file' }),
    prefix: '',
    uriPrefix: '',
  }),
  'an HTTP target': async () => {
    const { url } = await httpTarget()
    return {
      gateway: await startGateway(
        { mcp: { targets: [{ name: 'sdk', mcp: { host: url } }] } },
        { lifetime: 'file' },
      ),
      prefix: '',
      uriPrefix: '',
    }
  },
  'three targets behind one endpoint': async () => {
    const { url } = await httpTarget()
    const targets = [
      programTarget('paged', '--pages', '3'),
      { name: 'sdk', mcp: { host: url } },
      programTarget('tools', '--tools-only'),
    ]
    const gateway = await startGateway({ mcp: { targets } }, { lifetime: 'file' })
    return { gateway, prefix: 'sdk_', uriPrefix: 'sdk+' }
  },
}

describe.each(Object.keys(kinds))('with %s', (kind) => {
  let served: Served

  // Each client has sessions of its own.
  beforeAll(async () => {
    const start = kinds[kind]
    if (start === undefined) throw new Error(kind)
    served = await start()
  })

  it.each(generations)('%s does all an MCP client does', async (generation) => {
    const { gateway, prefix, uriPrefix } = served
    const client = await connectClient(generation, gateway.mcpUrl)

    expect(await client.tools()).toContain(`${prefix}test_simple_text`)
    expect(await client.prompts()).toContain(`${prefix}test_simple_prompt`)
    expect(await client.resources()).toContain(`${uriPrefix}test://static-text`)
    await client.ping()
    expect(await client.call(`${prefix}test_simple_text`)).toBe('This is a simple text response for testing.')
    expect(await client.read(`${uriPrefix}test://static-text`)).toBe(
      'This is the content of the static text resource.',
    )
    const asked = await client.prompt(`${prefix}test_prompt_with_arguments`, { arg1: 'a', arg2: 'b' })
    expect(asked).toContain("arg1='a', arg2='b'")
    await expect(client.call(`${prefix}test_error_handling`)).rejects.toThrow('intentionally')
    await expect(client.call(`${prefix}no_such_tool`)).rejects.toThrow(/[Uu]nknown tool/)

    // A server's own requests and notifications during a call arrive on the stream of the call.
    expect(await client.call(`${prefix}test_sampling`, { prompt: 'hello' })).toBe('LLM response: sampled')
    expect(await client.call(`${prefix}test_elicitation`, { message: 'who?' })).toContain(
      'action=accept, content={"username":"alice"',
    )
    const progress: number[] = []
    await client.call(`${prefix}test_tool_with_progress`, {}, { onProgress: (now) => progress.push(now) })
    expect(progress).toEqual([0, 50, 100])
    await client.call(`${prefix}test_tool_with_logging`)
    expect(client.heard).toEqual([
      'Tool execution started',
      'Tool processing data',
      'Tool execution completed',
    ])

    // Messages unrelated to a request arrive on the GET stream.
    expect(await client.call(`${prefix}test_roots`)).toBe('file:///work')
    await client.call(`${prefix}test_list_changed`)
    await until('the client hears of the change', () =>
      client.heard.includes('notifications/tools/list_changed'),
    )

    await client.end()
    await expect(client.ping()).rejects.toThrow()
  })

  it('the inspector lists and calls', async () => {
    const { gateway, prefix } = served
    const inspector = packageFile('@modelcontextprotocol/inspector', 'clients/launcher/build/index.js')
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-inspector-'))
    endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
    const common = ['--cli', gateway.mcpUrl, '--transport', 'http', '--method']
    const listed = await runProgram(inspector, [...common, 'tools/list'])
    expect(listed).toMatchObject({ code: 0 })
    expect(listed.stdout).toContain(`"${prefix}test_simple_text"`)
    const called = await runProgram(inspector, [
      ...common,
      'tools/call',
      '--tool-name',
      `${prefix}test_simple_text`,
    ])
    expect(called.stdout).toContain('This is a simple text response for testing.')
  })

  it('mcp-remote bridges to a client on standard input and output', async () => {
    const { gateway, prefix } = served
    const client = await connectMcpRemote(gateway.mcpUrl)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain(`${prefix}test_simple_text`)
    const result = await client.callTool({ name: `${prefix}test_simple_text` })
    expect(JSON.stringify(result)).toContain('This is a simple text response for testing.')
  })

  it('a client of the legacy SSE transport does the same at /sse', async () => {
    const { gateway, prefix } = served
    const client = new Client({ name: 'tollgate-test', version: '1.0.0' })
    endAfter('test', () => client.close())
    await client.connect(new SSEClientTransport(new URL('/sse', gateway.mcpUrl)))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain(`${prefix}test_simple_text`)
    const result = await client.callTool({ name: `${prefix}test_tool_with_progress` })
    expect(JSON.stringify(result)).toContain('Progress went to')
  })
})

describe('federation', () => {
  it('lists all pages of all targets, under the names of their targets', async () => {
    const targets = [programTarget('paged', '--pages', '3'), programTarget('tools', '--tools-only')]
    const gateway = await startGateway({ mcp: { targets } })
    const client = await connectClient('SDK 2', gateway.mcpUrl)
    const tools = await client.tools()
    expect(tools).toEqual(
      expect.arrayContaining(['paged_whoami', 'paged_page-1', 'paged_page-2', 'tools_whoami']),
    )
    expect(new Set(tools).size).toBe(tools.length)
    expect(await client.prompts()).toEqual(['paged_prompt-0', 'paged_prompt-1', 'paged_prompt-2'])
    expect(await client.resources()).toEqual([
      'paged+mem://paged/0',
      'paged+mem://paged/1',
      'paged+mem://paged/2',
    ])
    expect(await client.call('paged_whoami')).toBe('paged')
    expect(await client.call('tools_whoami')).toBe('tools')
  })
})

describe('the everything server', () => {
  const program = packageFile('@modelcontextprotocol/server-everything', 'dist/index.js')

  /** Runs it as a server of its own on a port. */
  async function run(transport: 'sse' | 'streamableHttp'): Promise<string> {
    const port = await freePort()
    const child = spawn(process.execPath, [program, transport], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdio: 'ignore',
    })
    const ended = once(child, 'exit')
    endAfter('file', async () => {
      child.kill('SIGKILL')
      await ended
    })
    const url = `http://127.0.0.1:${port}`
    await until('it listens', () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    )
    return url
  }

  const targets: Record<string, () => Promise<Record<string, unknown>>> = {
    stdio: async () => ({ stdio: { cmd: process.execPath, args: [program, 'stdio'] } }),
    mcp: async () => ({ mcp: { host: `${await run('streamableHttp')}/mcp` } }),
    sse: async () => ({ sse: { host: `${await run('sse')}/sse` } }),
  }

  describe.each(Object.keys(targets))('as a target of the kind %s', (kind) => {
    let gateway: Gateway

    beforeAll(async () => {
      const target = { name: 'everything', ...(await targets[kind]?.()) }
      const mcp = { targets: [target, programTarget('other')] }
      gateway = await startGateway({ mcp }, { lifetime: 'file' })
    })

    it.each(generations)('serves %s beside another target', async (generation) => {
      const client = await connectClient(generation, gateway.mcpUrl)
      expect(await client.call('everything_echo', { message: 'hello' })).toBe('Echo: hello')
      expect(await client.call('other_whoami')).toBe('other')
      expect((await client.prompts()).some((name) => name.startsWith('everything_'))).toBe(true)
      const [uri = ''] = (await client.resources()).filter((each) => each.startsWith('everything+'))
      expect(await client.read(uri)).not.toBe('')
      await client.end()
    })
  })
})
