import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '@bufbuild/protobuf'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import {
  base64,
  each,
  fieldsOf,
  headers,
  type Processor,
  type Seen,
  startProcessor,
  streamed,
  textOf,
  unchanged,
} from '../support/ext-proc-server.ts'
import { startGateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { type Routing, sharedRouting } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const program = fileURLToPath(new URL('../../../examples/mcp-server/server.mjs', import.meta.url))
const route = sharedRouting()
let processor: Processor
let upstreamPort = 0
let behave: (request: IncomingMessage, response: ServerResponse) => void
let received: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []

beforeAll(async () => {
  processor = await startProcessor(each(unchanged), { lifetime: 'file' })
  const upstream = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    const seen = { method, url, headers, body: '' }
    received.push(seen)
    if (url === '/unread') return behave(request, response)
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      seen.body = 'aborted'
      return
    }
    seen.body = Buffer.concat(chunks).toString()
    behave(request, response)
  })
  upstreamPort = await listening(upstream)
  endAfter('file', () => {
    upstream.closeAllConnections()
    upstream.close()
  })
})

beforeEach(() => {
  received = []
  processor.seen.length = 0
  processor.behaviour = each(unchanged)
  behave = (_, response) => response.end('answer')
})

type Options = Record<string, unknown>

let current: { text: string; routing: Routing } | undefined

/** A gateway with one route to the upstream; an equal configuration is not applied again. */
async function routed(policies: Options): Promise<Routing> {
  const routes = [{ name: 'r', policies, backends: [{ host: `127.0.0.1:${upstreamPort}` }] }]
  const text = JSON.stringify(routes)
  if (current?.text !== text) current = { text, routing: await route(routes) }
  return current.routing
}

function processing(options: Options = {}): Promise<Routing> {
  return routed({ extProc: { host: processor.host, ...options } })
}

const modes = (requestBodyMode: string, responseBodyMode = requestBodyMode, more: Options = {}) => ({
  processingOptions: { requestBodyMode, responseBodyMode, ...more },
})
const headersOnly = modes('none')

/** The kinds of the messages of the gateway. */
const kinds = () =>
  processor.seen.map((message) => Object.keys(message).find((key) => /^re(quest|sponse)/.test(key)))

function requestHeaders(mutation: JsonObject, more: JsonObject = {}) {
  return each((message) =>
    message.requestHeaders
      ? { requestHeaders: { response: { headerMutation: mutation } }, ...more }
      : unchanged(message),
  )
}

describe('headers', () => {
  it('pass the processor and reach it without those of the connection', async () => {
    const { port } = await processing(headersOnly)
    const reply = await call(port, '/a?b=c', {
      headers: { 'x-one': '1', 'x-forwarded-for': '6.6.6.6' },
      host: 'h',
    })
    expect([reply.status, reply.text, received.length]).toEqual([200, 'answer', 1])
    expect(kinds()).toEqual(['requestHeaders', 'responseHeaders'])
    const [request, response] = processor.seen
    expect(fieldsOf(request?.requestHeaders)).toEqual({
      ':method': 'GET',
      ':scheme': 'http',
      ':authority': 'h',
      ':path': '/a?b=c',
      'x-one': '1',
    })
    expect(request).toMatchObject({ requestHeaders: { endOfStream: true }, protocolConfig: {} })
    expect(fieldsOf(response?.responseHeaders)).toMatchObject({ ':status': '200' })
    await until('the streams end', () => processor.open() === 0)
  })

  it('are set, appended and removed, except for those of the connection', async () => {
    const { port } = await processing(headersOnly)
    const set = headers(
      { 'x-set': 'new', 'X-Case': 'ok', 'content-length': '7', connection: 'x' },
      { remove: ['x-gone', 'host'] },
    )
    const more = headers({ 'x-set': 'ignored', 'x-added': 'yes' }, { action: 1 })
    const existing = headers({ 'x-kept': 'over', 'x-absent': 'no' }, { action: 3 })
    const appended = { setHeaders: [{ header: { key: 'x-kept', value: 'two' }, append: { value: true } }] }
    const all = [set, more, existing, appended] as { setHeaders: JsonObject[]; removeHeaders?: string[] }[]
    processor.behaviour = requestHeaders({
      setHeaders: all.flatMap((one) => one.setHeaders),
      removeHeaders: ['x-gone', 'host'],
    })
    expect(
      (await call(port, '/', { headers: { 'x-gone': '1', 'x-kept': 'one', 'x-set': 'old' } })).status,
    ).toBe(200)
    expect(received[0]?.headers).toMatchObject({
      'x-set': 'new',
      'x-case': 'ok',
      'x-added': 'yes',
      'x-kept': 'over,two',
      host: `127.0.0.1:${upstreamPort}`,
    })
    expect(received[0]?.headers).not.toHaveProperty('x-gone')
    expect(received[0]?.headers).not.toHaveProperty('x-absent')
  })

  it('change the method, path and status', async () => {
    const { port } = await processing(headersOnly)
    processor.behaviour = each((message) =>
      message.requestHeaders
        ? {
            requestHeaders: {
              response: { headerMutation: headers({ ':path': '/other?x=1', ':method': 'PUT' }) },
            },
          }
        : { responseHeaders: { response: { headerMutation: headers({ ':status': '418', 'x-r': '1' }) } } },
    )
    const reply = await call(port, '/here', { method: 'POST', body: 'b' })
    expect([reply.status, reply.headers['x-r'], reply.text]).toEqual([418, '1', 'answer'])
    expect(received).toMatchObject([{ method: 'PUT', url: '/other?x=1', body: 'b' }])
  })

  it.each([
    ['a value with a line break', { 'x-a': 'b\r\nx-c: d' }],
    ['a name that is no token', { 'x a': 'b' }],
    ['a path that is ambiguous', { ':path': '/a/%2e%2e%2fb' }],
    ['a method that is not forwarded', { ':method': 'CONNECT' }],
  ])('refuse the request for %s', async (_, set) => {
    const { port } = await processing(headersOnly)
    processor.behaviour = requestHeaders(headers(set))
    const reply = await call(port, '/')
    expect([reply.status, reply.text, received.length]).toEqual([500, 'external processing failed', 0])
  })

  it('are for HEAD, 204, 304 and HTTP/2 the only message', async () => {
    const { port } = await processing()
    const client = http2Client(port)
    for (const [method, status] of [
      ['HEAD', 200],
      ['GET', 204],
      ['GET', 304],
    ] as const) {
      behave = (_, response) => response.writeHead(status, { 'x-u': '1' }).end()
      processor.seen.length = 0
      expect(await call(port, '/', { method })).toMatchObject({ status, text: '' })
      expect(kinds()).toEqual(['requestHeaders', 'responseHeaders'])
      expect(processor.seen[1]).toMatchObject({ responseHeaders: { endOfStream: true } })
      expect(await client.ask('/', { method })).toMatchObject({ status, text: '' })
    }
  })

  it('end the stream early if the processor receives nothing else', async () => {
    const { port } = await processing(
      modes('none', 'none', {
        responseHeaderMode: 'skip',
        responseTrailerMode: 'skip',
        requestTrailerMode: 'skip',
      }),
    )
    const hung = Promise.withResolvers<ServerResponse>()
    behave = (_, response) => hung.resolve(response)
    const reply = call(port, '/')
    const response = await hung.promise
    await until('the streams end', () => processor.open() === 0)
    response.end('late')
    expect((await reply).text).toBe('late')
  })
})

describe('bodies', () => {
  const text = 'x'.repeat(200_000)

  it.each(['none', 'streamed', 'buffered', 'bufferedPartial', 'fullDuplexStreamed'])(
    'of mode %s pass unchanged, with HTTP/1 and HTTP/2',
    async (mode) => {
      const { port } = await processing(modes(mode))
      processor.behaviour = each((message) => unchanged(message, mode === 'fullDuplexStreamed'))
      behave = (_, response) => response.end(text)
      const client = http2Client(port)
      for (const send of [call.bind(undefined, port), client.ask]) {
        const reply = await send('/', { method: 'POST', body: text })
        expect([reply.status, reply.text === text]).toEqual([200, true])
        expect(received.at(-1)?.body === text).toBe(true)
      }
      const sent =
        processor.seen.some((message) => message.requestBody) &&
        processor.seen.some((message) => message.responseBody)
      expect(sent).toBe(mode !== 'none')
      await until('the streams end', () => processor.open() === 0)
    },
  )

  it('are replaced and cleared when buffered, with their headers', async () => {
    const { port } = await processing(modes('buffered'))
    processor.behaviour = each((message) => {
      if (message.requestBody) {
        const body = base64(textOf(message.requestBody.body).toUpperCase())
        return {
          requestBody: {
            response: { bodyMutation: { body }, headerMutation: headers({ 'x-body': 'seen' }) },
          },
        }
      }
      return message.responseBody
        ? { responseBody: { response: { bodyMutation: { clearBody: true } } } }
        : unchanged(message)
    })
    const reply = await call(port, '/', { method: 'POST', body: 'hello' })
    expect([reply.status, reply.text, reply.headers['content-length']]).toEqual([200, '', '0'])
    expect(received).toMatchObject([{ body: 'HELLO', headers: { 'x-body': 'seen', 'content-length': '5' } }])
    expect(kinds()).toEqual(['requestHeaders', 'requestBody', 'responseHeaders', 'responseBody'])
  })

  it('are replaced chunk by chunk when streamed', async () => {
    const { port } = await processing(modes('streamed'))
    processor.behaviour = each((message) => {
      const body = message.requestBody ?? message.responseBody
      if (body === undefined) return unchanged(message)
      const bodyMutation = { body: base64(body.endOfStream ? '!' : textOf(body.body).toUpperCase()) }
      return { [message.requestBody ? 'requestBody' : 'responseBody']: { response: { bodyMutation } } }
    })
    const reply = await call(port, '/', { method: 'POST', body: 'hello' })
    expect([received[0]?.body, reply.text]).toEqual(['HELLO!', 'ANSWER!'])
    expect(received[0]?.headers['content-length']).toBeUndefined()
  })

  it('are produced by the processor in full duplex, after all of the input', async () => {
    const { port } = await processing()
    processor.behaviour = async function* behaviour(messages) {
      let body = ''
      for await (const message of messages) {
        body += textOf(message.requestBody?.body)
        if (message.requestBody?.endOfStream) {
          yield {
            requestHeaders: { response: { headerMutation: headers({ 'x-size': String(body.length) }) } },
          }
          for (const part of ['one ', 'two'])
            yield { requestBody: streamed({ body: base64(part), endOfStream: part === 'two' }) }
        }
        if (message.responseHeaders) yield { responseHeaders: {} }
        if (message.responseBody) yield { responseBody: streamed(message.responseBody) }
      }
    }
    const reply = await call(port, '/', { method: 'POST', body: text })
    expect([reply.status, reply.text]).toEqual([200, 'answer'])
    expect(received).toMatchObject([{ body: 'one two', headers: { 'x-size': '200000' } }])
  })

  it('of limited size are buffered, larger ones refused or sent in part', async () => {
    const limited = { ...modes('buffered'), maxBufferSize: 1024 }
    const { port, gateway } = await processing(limited)
    expect((await call(port, '/', { method: 'POST', body: 'x'.repeat(1025) })).status).toBe(413)
    behave = (_, response) => response.end('x'.repeat(1025))
    expect((await call(port, '/')).status).toBe(502)
    const partial = await processing({ ...modes('bufferedPartial'), maxBufferSize: 1024 })
    processor.behaviour = each((message) => {
      if (message.requestBody) return { requestBody: { response: { bodyMutation: { body: base64('-') } } } }
      return unchanged(message)
    })
    const reply = await call(partial.port, '/', { method: 'POST', body: 'x'.repeat(200_000) })
    expect([reply.status, reply.text.length]).toEqual([200, 1025])
    expect(received.at(-1)?.body).toMatch(/^-x*$/)
    expect(gateway.stderr()).toBe('')
  })

  it('are replaced with the headers, for a request without a body, too', async () => {
    const { port } = await processing()
    processor.behaviour = each((message) =>
      message.requestHeaders
        ? {
            requestHeaders: {
              response: {
                status: 1,
                headerMutation: headers({ ':method': 'POST' }),
                bodyMutation: { body: base64('made') },
              },
            },
          }
        : unchanged(message, true),
    )
    expect((await call(port, '/')).status).toBe(200)
    expect(received).toMatchObject([{ method: 'POST', body: 'made' }])
  })

  it('stream in both directions without delay', async () => {
    const { port } = await processing()
    processor.behaviour = each((message) => unchanged(message, true))
    const next = Promise.withResolvers<ServerResponse>()
    behave = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      next.resolve(response)
    }
    const client = await fetch(`http://127.0.0.1:${port}/`)
    const reader = client.body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n')
    const response = await next.promise
    response.end('data: 2\n\n')
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 2\n\n')
    expect((await reader?.read())?.done).toBe(true)
  })

  it('have trailers, which the processor changes', async () => {
    for (const mode of ['none', 'streamed', 'buffered', 'fullDuplexStreamed']) {
      const { port } = await processing(modes(mode))
      processor.behaviour = each((message) =>
        message.responseTrailers
          ? { responseTrailers: { headerMutation: headers({ 'x-more': '1' }, { remove: ['x-gone'] }) } }
          : unchanged(message, mode === 'fullDuplexStreamed'),
      )
      behave = (_, response) => {
        response.writeHead(200, { trailer: 'x-sum, x-gone' })
        response.write('body')
        response.addTrailers({ 'x-sum': 'abc', 'x-gone': '1' })
        response.end()
      }
      const reply = await call(port, '/', { headers: { te: 'trailers' } })
      expect([mode, reply.text, reply.trailers]).toEqual([mode, 'body', { 'x-sum': 'abc', 'x-more': '1' }])
    }
  })
})

describe('immediate responses', () => {
  const immediate = {
    immediateResponse: { status: { code: 403 }, body: 'no', headers: headers({ 'x-why': 'rule' }) },
  }
  const at = (step: keyof Seen) => each((message) => (message[step] ? immediate : unchanged(message)))

  it.each([
    ['requestHeaders', 'buffered'],
    ['requestBody', 'buffered'],
    ['requestBody', 'streamed'],
    ['requestBody', 'fullDuplexStreamed'],
    ['responseHeaders', 'buffered'],
    ['responseBody', 'buffered'],
  ] as const)('to %s of mode %s are the reply', async (step, mode) => {
    const { port, gateway } = await processing(modes(mode))
    processor.behaviour = at(step)
    const lines = gateway.requests().length
    const reply = await call(port, '/', { method: 'POST', body: 'hello' })
    expect([reply.status, reply.text, reply.headers['x-why'], reply.headers['content-type']]).toEqual([
      403,
      'no',
      'rule',
      'text/plain; charset=utf-8',
    ])
    const line = (await gateway.logged(lines + 1)).at(-1)
    expect(line).toMatchObject({ status: 403, refusedBy: 'ext-proc' })
    await until('the streams end', () => processor.open() === 0)
  })

  it('after the head of the response abort it', async () => {
    const { port } = await processing(modes('none', 'streamed'))
    processor.behaviour = at('responseBody')
    await expect(call(port, '/')).rejects.toThrow()
  })

  it('have a gRPC status for gRPC requests', async () => {
    const { port } = await processing(headersOnly)
    processor.behaviour = each(() => ({
      immediateResponse: { status: { code: 401 }, body: 'log in', grpcStatus: { status: 16 } },
    }))
    const reply = await call(port, '/', {
      method: 'POST',
      body: 'x',
      headers: { 'content-type': 'application/grpc' },
    })
    expect([reply.status, reply.headers['grpc-status'], reply.headers['grpc-message'], reply.text]).toEqual([
      200,
      '16',
      'log%20in',
      '',
    ])
  })
})

describe('mode overrides', () => {
  const override = each((message) =>
    message.requestHeaders
      ? { requestHeaders: {}, modeOverride: { requestBodyMode: 'BUFFERED', responseHeaderMode: 2 } }
      : unchanged(message),
  )

  it('change later modes if they are permitted', async () => {
    const { port } = await processing(modes('none', 'none', { allowModeOverride: true }))
    processor.behaviour = override
    expect((await call(port, '/', { method: 'POST', body: 'hello' })).status).toBe(200)
    expect(kinds()).toEqual(['requestHeaders', 'requestBody'])
  })

  it('are ignored otherwise', async () => {
    const { port } = await processing(headersOnly)
    processor.behaviour = override
    expect((await call(port, '/', { method: 'POST', body: 'hello' })).status).toBe(200)
    expect(kinds()).toEqual(['requestHeaders', 'responseHeaders'])
  })
})

describe('values', () => {
  it('of expressions reach the processor, and its values reach expressions', async () => {
    const { port } = await processing({
      ...headersOnly,
      metadataContext: {
        'dev.test': { path: 'request.path', nothing: 'request.headers["x-none"]' },
        'agentgateway.dev.grpc_initial_metadata': { 'x-tenant': '"blue"' },
      },
      requestAttributes: { 'source.address': 'source.address', list: '[1, "a", true, null]' },
      responseAttributes: { code: 'response.code' },
    })
    let tenant: string | null = null
    processor.behaviour = async function* behaviour(messages, { headers: metadata }) {
      tenant = metadata.get('x-tenant')
      for await (const message of messages) {
        const response = unchanged(message)
        if (response) yield { ...response, dynamicMetadata: { score: 3, deep: { list: [1, { a: '' }] } } }
      }
    }
    expect((await call(port, '/p')).status).toBe(200)
    const namespace = 'envoy.filters.http.ext_proc'
    expect(tenant).toBe('blue')
    expect(processor.seen).toMatchObject([
      {
        metadataContext: { filterMetadata: { 'dev.test': { path: '/p' } } },
        attributes: { [namespace]: { 'source.address': '127.0.0.1', list: [1, 'a', true, null] } },
      },
      { attributes: { [namespace]: { code: 200 } } },
    ])
  })

  it('select a conditional processor', async () => {
    const { port } = await routed({
      extProc: {
        conditional: [{ condition: 'request.path.startsWith("/in")', host: processor.host, ...headersOnly }],
      },
    })
    await call(port, '/out')
    expect(kinds()).toEqual([])
    await call(port, '/in')
    expect(kinds()).toEqual(['requestHeaders', 'responseHeaders'])
  })
})

describe('models', () => {
  const llm = (options: Options) => ({
    llm: {
      models: [{ name: 'echo', provider: 'echo' }],
      policies: { extProc: { host: processor.host, ...options } },
    },
  })
  const chat = { model: 'none', messages: [{ role: 'user', content: 'hello' }] }

  it.each(['buffered', 'fullDuplexStreamed'])(
    'read the body of the processor in mode %s, which receives their streams',
    async (mode) => {
      const gateway = await startGateway(llm(modes(mode)))
      processor.behaviour = each((message) => {
        if (message.requestBody) {
          const isLast = message.requestBody.endOfStream === true
          const body = base64(textOf(message.requestBody.body).replace('none', 'echo'))
          if (mode === 'buffered') return { requestBody: { response: { bodyMutation: { body } } } }
          return { requestBody: streamed({ body, endOfStream: isLast }) }
        }
        return unchanged(message, mode !== 'buffered')
      })
      const post = (body: object, headers = {}) =>
        fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        })
      const whole = await post(chat)
      expect([whole.status, await whole.text()]).toEqual([200, expect.stringContaining('hello')])
      const stream = await post({ ...chat, stream: true })
      expect([stream.status, await stream.text()]).toEqual([200, expect.stringContaining('data: [DONE]')])
      expect(processor.seen.some((message) => message.responseBody)).toBe(true)
    },
  )
})

it('metadata of the processor separate clients in the response cache', async () => {
  current = undefined
  const { port } = await route([
    {
      name: 'cached',
      policies: { extProc: { host: processor.host, ...headersOnly }, ai: { cache: { ttl: '1h' } } },
      backends: [{ ai: { provider: { echo: {} } } }],
    },
  ])
  const chatOf = async (user: string) => {
    const dynamicMetadata: JsonObject = user === '' ? {} : { dynamicMetadata: { user } }
    processor.behaviour = requestHeaders({}, dynamicMetadata)
    const { status, headers: answer } = await call(port, '/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hello' }] }),
    })
    return [status, answer['x-cache']]
  }
  const results = []
  for (const user of ['ada', 'bob', 'ada', '', '']) results.push(await chatOf(user))
  expect(results).toEqual([
    [200, 'miss'],
    [200, 'miss'],
    [200, 'hit'],
    [200, undefined],
    [200, undefined],
  ])
})

it('MCP messages and their event streams pass the processor', async () => {
  const gateway = await startGateway({
    mcp: {
      targets: [{ name: 'program', stdio: { cmd: process.execPath, args: [program] } }],
      policies: { extProc: { host: processor.host } },
    },
  })
  processor.behaviour = each((message) => unchanged(message, true))
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } }
  const reply = await fetch(gateway.mcpUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  })
  expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('serverInfo')])
  expect(processor.seen.some((message) => message.requestBody)).toBe(true)
  expect(processor.seen.some((message) => message.responseBody)).toBe(true)
  await until('the streams end', () => processor.open() === 0)
})
