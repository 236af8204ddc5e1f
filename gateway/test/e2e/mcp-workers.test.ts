import { Agent, type IncomingMessage, request as sendHttp } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { isJsonObject, type JsonObject } from '../../src/lib/json/json.ts'
import { type HttpTarget, serveHttp } from '../conformance/target/http.ts'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { programTarget, sdkTarget } from '../support/mcp-fixtures.ts'
import { initializeMessage, mcpHeaders } from '../support/mcp-raw.ts'
import { member, startMockServer } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

// Sessions of every kind of target. Each message has its own connection, and so one of four threads.

type Answer = { status: number; headers: IncomingMessage['headers']; text: string }

/** Sends a request on a new connection. */
function send(url: string, method: string, headers: Record<string, string>, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = sendHttp(url, { method, headers, agent: new Agent() }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** A `fetch` with a new connection for each request. */
const fetchOnce: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers)
  headers.set('connection', 'close')
  return fetch(input, { ...init, headers })
}

type Session = {
  post(message: JsonObject): Promise<Answer>
  call(tool: string, args?: JsonObject): Promise<string>
  end(): Promise<Answer>
  headers: Record<string, string>
}

let lastId = 0

async function open({ mcpUrl }: Gateway): Promise<Session> {
  const post = (message: JsonObject, headers: Record<string, string> = {}) =>
    send(mcpUrl, 'POST', { ...mcpHeaders, ...headers }, JSON.stringify(message))
  const begun = await post(initializeMessage)
  const headers = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
  const session: Session = {
    headers,
    post: (message) => post(message, headers),
    async call(name, args = {}) {
      lastId += 1
      const message = { jsonrpc: '2.0', id: lastId, method: 'tools/call', params: { name, arguments: args } }
      const { text } = await session.post(message)
      const response = messagesIn(text).find(({ id, method }) => id === message.id && method === undefined)
      const content = member(response, 'result', 'content', 0, 'text')
      if (typeof content !== 'string') throw new Error(`no result: ${text}`)
      return content
    },
    end: () => send(mcpUrl, 'DELETE', headers),
  }
  expect((await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
  return session
}

function messagesIn(text: string): JsonObject[] {
  const datas = text.startsWith('{') ? [text] : [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => data)
  return datas.map((data) => JSON.parse(data ?? '')).filter((value) => isJsonObject(value))
}

const workers = { config: { workerThreads: 4 } }

async function httpTarget(): Promise<HttpTarget> {
  const target = await serveHttp()
  endAfter('test', target.close)
  return target
}

async function openApiTarget(name: string) {
  const server = await startMockServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"pet":"cat"}')
  })
  const operation = { operationId: 'pet', responses: { 200: { description: 'A pet.' } } }
  const info = { title: 'Pets', version: '1' }
  const schema = { openapi: '3.0.0', info, paths: { '/pet': { get: operation } } }
  return { name, openapi: { host: server.url, schema } }
}

const all = <T>(count: number, make: (index: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)))

describe('a session over several connections and threads', () => {
  const kinds: Record<string, { tool: string; text: string; target(): Promise<JsonObject> }> = {
    'a program': { tool: 'whoami', text: 'program', target: async () => programTarget('program') },
    'a server with the SSE transport': {
      tool: 'test_simple_text',
      text: 'simple text response',
      target: async () => ({ name: 'sse', sse: { host: await legacyServer() } }),
    },
    'a server with streamable HTTP': {
      tool: 'test_simple_text',
      text: 'simple text response',
      target: async () => ({ name: 'http', mcp: { host: (await httpTarget()).url } }),
    },
    'an HTTP API': { tool: 'pet', text: 'cat', target: () => openApiTarget('api') },
  }

  it.each(Object.keys(kinds))('continues with %s until DELETE, which ends it everywhere', async (kind) => {
    const { tool, text, target } = kinds[kind] ?? { tool: '', text: '', target: async () => ({}) }
    const gateway = await startGateway({ ...workers, mcp: { targets: [await target()] } })
    const session = await open(gateway)
    for (let index = 0; index < 20; index += 1) expect(await session.call(tool)).toContain(text)
    const texts = await all(40, () => session.call(tool))
    expect(texts.every((answer) => answer.includes(text))).toBe(true)
    // The process id of the program, which is one for all threads.
    if (tool === 'whoami') expect(new Set(await all(40, () => session.call('pid'))).size).toBe(1)
    expect((await session.end()).status).toBe(204)
    const ended = await all(20, () => session.post({ jsonrpc: '2.0', id: 1, method: 'ping' }))
    for (const answer of ended) {
      expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('the client ended it')])
    }
  })

  it('continues with all kinds of targets together', async () => {
    const targets = [
      programTarget('program'),
      { name: 'sse', sse: { host: await legacyServer() } },
      { name: 'http', mcp: { host: (await httpTarget()).url } },
      await openApiTarget('api'),
    ]
    const gateway = await startGateway({ ...workers, mcp: { targets } })
    const session = await open(gateway)
    const calls = ['program_whoami', 'sse_test_simple_text', 'http_test_simple_text', 'api_pet']
    const texts = await all(40, (index) => session.call(calls[index % 4] ?? ''))
    for (const [index, text] of texts.entries()) {
      expect(text).toContain(['program', 'simple text', 'simple text', 'cat'][index % 4])
    }
    const lists = await all(10, (id) => session.post({ jsonrpc: '2.0', id, method: 'tools/list' }))
    for (const { text } of lists) for (const name of calls) expect(text).toContain(`"${name}"`)
    expect((await session.end()).status).toBe(204)
  })

  it('forwards cancellations to a program and an HTTP API', async () => {
    const server = await startMockServer(() => {})
    const operation = { operationId: 'wait', responses: { 200: { description: 'Never.' } } }
    const info = { title: 'Slow', version: '1' }
    const schema = { openapi: '3.0.0', info, paths: { '/wait': { get: operation } } }
    const targets = [programTarget('program'), { name: 'api', openapi: { host: server.url, schema } }]
    const gateway = await startGateway({ ...workers, mcp: { targets } })
    const session = await open(gateway)
    await all(12, async (index) => {
      const id = `call-${index}`
      const name = index % 2 === 0 ? 'program_hang' : 'api_wait'
      const pending = session.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })
      const params = { requestId: id }
      let over = false
      const done = pending.then((answer) => {
        over = true
        return answer
      })
      await until('the call is cancelled', async () => {
        await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
        return over
      })
      expect((await done).text).toContain('cancelled')
    })
    expect(await session.call('program_cancellations')).toBe('6')
  })

  it('ends with its program, and reports the reason on all connections', async () => {
    const gateway = await startGateway({ ...workers, mcp: { targets: [programTarget('program')] } })
    const session = await open(gateway)
    await expect(session.call('crash')).rejects.toThrow()
    await until('the session has ended', async () => {
      const answers = await all(10, () => session.post({ jsonrpc: '2.0', id: 1, method: 'ping' }))
      return answers.every(({ status, text }) => status === 404 && text.includes('ended'))
    })
  })

  it('pauses a program for a slow client', async () => {
    const gateway = await startGateway({ ...workers, mcp: { targets: [programTarget('program')] } })
    const session = await open(gateway)
    const bytes = 4 * 1024 * 1024
    const texts = await all(6, () => session.call('big', { bytes }))
    expect(texts.every((text) => text.length === bytes)).toBe(true)
  })

  it('counts once toward limits', async () => {
    const gateway = await startGateway({
      config: { ...workers.config, limits: { maxMcpSessionsPerClient: 3 } },
      mcp: { targets: [{ name: 'http', mcp: { host: (await httpTarget()).url } }] },
    })
    const sessions = await all(3, () => open(gateway))
    for (const session of sessions) await all(10, () => session.call('test_simple_text'))
    const initialize = () => send(gateway.mcpUrl, 'POST', mcpHeaders, JSON.stringify(initializeMessage))
    const refused = await all(8, initialize)
    expect(refused.map(({ status }) => status)).toEqual(Array(8).fill(429))
    expect((await sessions[0]?.end())?.status).toBe(204)
    const statuses = (await all(8, initialize)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  })
})

describe('a thread that ends', () => {
  const preload = new URL('../support/end-data-plane.mjs', import.meta.url).href
  const env = {
    NODE_OPTIONS: `--import ${preload}`,
    TOLLGATE_TEST_PLANE: '1',
    TOLLGATE_TEST_END: 'throw',
  }

  it.each(['stdio', 'http'])(
    'ends its sessions with programs only: %s',
    async (kind) => {
      const isBound = kind === 'stdio'
      const target = isBound
        ? programTarget('program')
        : { name: 'http', mcp: { host: (await httpTarget()).url } }
      const gateway = await startGateway({ ...workers, mcp: { targets: [target] } }, { env })
      // Some of them start on each thread: the chance of none on one is below 0.1 %.
      const sessions = await all(24, () => open(gateway))
      const tool = isBound ? 'whoami' : 'test_simple_text'
      await all(24, async (index) => sessions[index]?.call(tool))
      const pending = isBound ? sessions.map((session) => session.call('hang').catch(String)) : []
      gateway.child.kill('SIGUSR2')
      await until('the thread is replaced', () => gateway.stdout().includes('"msg":"data plane replaced"'))
      const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' }
      for (let round = 0; round < 4; round += 1) {
        const answers = await all(24, async (index) => sessions[index]?.post(ping))
        const ended = answers.filter((answer) => answer?.status === 404)
        expect(answers.every((answer) => answer?.status === 200 || answer?.status === 404)).toBe(true)
        expect(ended.length > 0).toBe(isBound)
        expect(ended.length).toBeLessThan(24)
        for (const answer of ended) expect(answer?.text).toContain('has ended')
      }
      // No call of an ended session waits for ever; those of others continue.
      for (const session of sessions) await session.end()
      await Promise.all(pending)
    },
    60_000,
  )
})

describe('official clients over several threads', () => {
  const sampled = {
    role: 'assistant' as const,
    content: { type: 'text' as const, text: 'sampled' },
    model: 'm',
  }

  function createClient(): Client {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { sampling: {}, roots: {} } })
    client.setRequestHandler(CreateMessageRequestSchema, () => sampled)
    client.setRequestHandler(ListRootsRequestSchema, () => ({
      roots: [{ uri: 'file:///work', name: 'work' }],
    }))
    endAfter('test', () => client.close())
    return client
  }

  async function exercise(client: Client, prefix: string): Promise<void> {
    for (let round = 0; round < 5; round += 1) {
      const { tools } = await client.listTools()
      expect(tools.map(({ name }) => name)).toContain(`${prefix}test_simple_text`)
      const sampling = await client.callTool({ name: `${prefix}test_sampling`, arguments: { prompt: 'hi' } })
      expect(JSON.stringify(sampling)).toContain('sampled')
      const progress: number[] = []
      await client.callTool({ name: `${prefix}test_tool_with_progress` }, undefined, {
        onprogress: (report) => progress.push(report.progress),
      })
      expect(progress).toEqual([0, 50, 100])
      const rootsOf = await client.callTool({ name: `${prefix}test_roots` })
      expect(JSON.stringify(rootsOf)).toContain('file:///work')
      await client.setLoggingLevel('debug')
    }
  }

  it.each(['stdio', 'http', 'both'])('do everything with %s targets', async (kind) => {
    const http = { name: 'http', mcp: { host: (await httpTarget()).url } }
    const targets = { stdio: [sdkTarget('sdk')], http: [http], both: [sdkTarget('sdk'), http] }[kind] ?? []
    const gateway = await startGateway({ ...workers, mcp: { targets } })
    const url = new URL(gateway.mcpUrl)
    const client = createClient()
    const transport = new StreamableHTTPClientTransport(url, { fetch: fetchOnce })
    await client.connect(transport)
    await exercise(client, kind === 'both' ? 'sdk_' : '')
    if (kind === 'both') await exercise(client, 'http_')
    await transport.terminateSession()
  })

  it.each(['stdio', 'http'])('do everything over the HTTP+SSE transport with %s targets', async (kind) => {
    const http = { name: 'http', mcp: { host: (await httpTarget()).url } }
    const targets = kind === 'stdio' ? [sdkTarget('sdk')] : [http]
    const gateway = await startGateway({ ...workers, mcp: { targets } })
    const client = createClient()
    await client.connect(new SSEClientTransport(new URL('/sse', gateway.mcpUrl), { fetch: fetchOnce }))
    await exercise(client, '')
  })
})

/** A server with the HTTP+SSE transport: a gateway in front of the conformance target. */
async function legacyServer(): Promise<string> {
  const gateway = await startGateway({
    mcp: { targets: [{ name: 'http', mcp: { host: (await httpTarget()).url } }] },
  })
  return new URL('/sse', gateway.mcpUrl).href
}
