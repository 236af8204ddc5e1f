import { spawn } from 'node:child_process'
import type { ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { compileSse } from '../../src/backends/mcp/targets/sse.ts'
import type { Target } from '../../src/backends/mcp/targets/target.ts'
import { createHttpClient } from '../../src/net/http-client/http-client.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Answer, type MockServer, member, startMockServer } from '../support/mock-server.ts'
import { call, callContext, collect, messageOf, reasonOf, resultOf } from '../support/target-session.ts'
import { until, within } from '../support/wait.ts'

// The target of the legacy HTTP+SSE transport on real sockets.

const silent = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }

function targetAt(host: string): Target {
  const client = createHttpClient({
    connectTimeoutMs: 1000,
    keepAliveMs: 1000,
    firstByteTimeoutMs: 5000,
    idleTimeoutMs: 300,
  })
  endAfter('test', () => client.close())
  return compileSse('legacy', { host }, { send: client.send, log: silent })
}

type Legacy = MockServer & {
  /** The event stream of the session that came last. */
  stream(): ServerResponse
  say(event: string, data: unknown): void
}

/** A server that answers every request over the stream, unless a test answers it. */
async function startLegacy(endpoint = '/messages?session=1'): Promise<Legacy> {
  let stream: ServerResponse | undefined
  const say = (event: string, data: unknown) => {
    const text = typeof data === 'string' ? data : JSON.stringify(data)
    stream?.write(`event: ${event}\ndata: ${text}\n\n`)
  }
  const answer: Answer = (request, response) => {
    if (request.method === 'GET') {
      stream = response
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      say('endpoint', endpoint)
      return
    }
    response.writeHead(202).end('Accepted')
    const id = member(request.json, 'id')
    const method = member(request.json, 'method')
    if (id !== undefined && method !== 'wait') say('message', { jsonrpc: '2.0', id, result: { method } })
  }
  const server = await startMockServer(answer)
  return {
    ...server,
    stream() {
      if (stream === undefined) throw new Error('no stream yet')
      return stream
    },
    say,
  }
}

describe('a legacy SSE target', () => {
  it('posts to the announced endpoint and reads the responses from the stream', async () => {
    const server = await startLegacy()
    const session = targetAt(`${server.url}/events`).open()
    const request = messageOf({ jsonrpc: '2.0', id: 'a "b"', method: 'initialize', params: {} })
    const sink = collect()
    session.request(request, callContext({ 'x-client': 'yes' }), sink)
    expect(await sink.ended).toBe(undefined)
    expect(sink.messages).toEqual([{ jsonrpc: '2.0', id: 'a "b"', result: { method: 'initialize' } }])
    expect(server.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /events',
      'POST /messages?session=1',
    ])
    expect(server.seen.map(({ headers }) => headers['x-client'])).toEqual(['yes', 'yes'])
  })

  it('keeps its stream through silences longer than those of ordinary answers', async () => {
    const server = await startLegacy()
    const session = targetAt(server.url).open()
    await resultOf(call(session, 'initialize'))
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(await resultOf(call(session, 'ping'))).toEqual({ method: 'ping' })
  })

  it('passes unrequested messages to the listener', async () => {
    const server = await startLegacy()
    const session = targetAt(server.url).open()
    await resultOf(call(session, 'initialize'))
    const sink = collect()
    expect(await session.listen(callContext(), sink)).toMatchObject({ kind: 'flow' })
    server.say('message', { jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    await until('the message comes', () => sink.messages.length === 1)
  })

  it('does not post to another origin', async () => {
    const other = await startLegacy()
    const server = await startLegacy(`${other.url}/messages`)
    const failure = await call(targetAt(server.url).open(), 'initialize').ended
    expect(reasonOf(failure)).toContain('another origin')
    expect(other.seen).toEqual([])
  })

  it('passes on the refusal of the server', async () => {
    const server = await startMockServer((_, response) => {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end('no')
    })
    const failure = await call(targetAt(server.url).open(), 'initialize').ended
    expect(failure).toMatchObject({
      kind: 'reply',
      reply: { status: 401, headers: { 'www-authenticate': 'Bearer' } },
    })
  })

  it('passes on the refusal of a single message, and goes on', async () => {
    const server = await startLegacy()
    const session = targetAt(server.url).open()
    await resultOf(call(session, 'initialize'))
    server.next((_, response) => response.writeHead(400).end('bad'))
    expect(reasonOf(await call(session, 'odd').ended)).toBe('reply: 400')
    expect(await resultOf(call(session, 'ping'))).toEqual({ method: 'ping' })
  })

  it('fails pending and later requests when the stream ends', async () => {
    const server = await startLegacy()
    const session = targetAt(server.url).open()
    const deaths: string[] = []
    session.onTerminated((reason) => deaths.push(reason))
    await resultOf(call(session, 'initialize'))
    const waiting = call(session, 'wait')
    await until('the request is there', () => server.seen.length === 3)
    server.stream().end()
    expect(reasonOf(await waiting.ended)).toBe(
      'upstream_reset: target "legacy" ended: its event stream ended',
    )
    expect(deaths).toEqual(['target "legacy" ended: its event stream ended'])
    expect(reasonOf(await call(session, 'ping').ended)).toBe('ended: its event stream ended')
  })

  it('closes its stream with the session', async () => {
    const server = await startLegacy()
    const session = targetAt(server.url).open()
    await resultOf(call(session, 'initialize'))
    await session.close()
    await within(
      'the stream is closed',
      until('it is', () => server.seen[0]?.aborted === true),
    )
  })

  it('reports that no server listens', async () => {
    const [port] = await freePorts(1)
    const failure = await call(targetAt(`http://127.0.0.1:${port}`).open(), 'initialize').ended
    expect(reasonOf(failure)).toMatch(/^upstream_connect: target "legacy" is not available/)
  })

  it('speaks with the official server', async () => {
    const everything = createRequire(import.meta.url).resolve(
      '@modelcontextprotocol/server-everything/dist/index.js',
    )
    const [port = 0] = await freePorts(1)
    const child = spawn(process.execPath, [everything, 'sse'], {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    endAfter('test', () => {
      child.kill('SIGKILL')
    })
    let output = ''
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    await until('the server listens', () => output.includes('running'))
    const session = targetAt(`http://127.0.0.1:${port}`).open()
    const clientInfo = { name: 'test', version: '1' }
    await resultOf(
      call(session, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }),
    )
    await session.deliver(messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' }), callContext())
    const result = await resultOf(
      call(session, 'tools/call', { name: 'echo', arguments: { message: 'hello' } }),
    )
    expect(result['content']).toEqual([{ type: 'text', text: 'Echo: hello' }])
    await session.close()
  })
})
