import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { JsonObject } from '@bufbuild/protobuf'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import {
  base64,
  each,
  headers,
  type Processor,
  startProcessor,
  streamed,
  unchanged,
} from '../support/ext-proc-server.ts'
import { freePort } from '../support/free-port.ts'
import { call } from '../support/http-call.ts'
import { listening } from '../support/listening.ts'
import { type Routing, routingConfig, sharedRouting } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const route = sharedRouting()
let processor: Processor
let upstreamPort = 0
let behave: (request: IncomingMessage, response: ServerResponse) => void
let bodies: string[] = []

beforeAll(async () => {
  processor = await startProcessor(each(unchanged), { lifetime: 'file' })
  const upstream = createServer((incoming, response) => {
    let body = ''
    incoming.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    incoming.on('end', () => {
      bodies.push(body)
      behave(incoming, response)
    })
  })
  upstreamPort = await listening(upstream)
  endAfter('file', () => {
    upstream.closeAllConnections()
    upstream.close()
  })
})

beforeEach(() => {
  bodies = []
  processor.seen.length = 0
  processor.behaviour = each((message) => unchanged(message, true))
  behave = (_, response) => response.end('answer')
})

type Options = Record<string, unknown>
let current: { text: string; routing: Routing } | undefined

function routesTo(options: Options) {
  return [
    {
      name: 'r',
      policies: { extProc: { host: processor.host, messageTimeout: '200ms', ...options } },
      backends: [{ host: `127.0.0.1:${upstreamPort}` }],
    },
  ]
}

/** A gateway with one route to the upstream; an equal configuration is not applied again. */
async function processing(options: Options = {}): Promise<Routing> {
  const routes = routesTo(options)
  const text = JSON.stringify(routes)
  if (current?.text !== text) current = { text, routing: await route(routes) }
  return current.routing
}

const failOpen = { failureMode: 'failOpen' }
const modes = (mode: string) => ({ processingOptions: { requestBodyMode: mode, responseBodyMode: mode } })
const post = (port: number, body = 'hello') => call(port, '/', { method: 'POST', body })

const faults: [string, () => AsyncIterable<JsonObject>][] = [
  [
    'no response',
    async function* silent() {
      yield* []
      await new Promise(() => {})
    },
  ],
  [
    'an error',
    async function* failing() {
      yield* []
      throw new Error('broken')
    },
  ],
  [
    'the end of the stream',
    async function* ending() {
      yield* []
    },
  ],
  [
    'a response to another message',
    async function* other() {
      yield { responseHeaders: {} }
    },
  ],
  [
    'two responses',
    async function* twice() {
      yield { requestHeaders: {} }
      yield { requestHeaders: {} }
      await new Promise(() => {})
    },
  ],
  [
    'a body before the headers',
    async function* early() {
      yield { requestBody: streamed({ body: base64('x') }) }
    },
  ],
  [
    'a header that cannot be sent',
    async function* invalid() {
      yield { requestHeaders: { response: { headerMutation: headers({ 'x-a': 'a\nb' }) } } }
    },
  ],
  [
    'endless empty messages',
    async function* empty() {
      for (;;) yield {}
    },
  ],
]

describe.each(['streamed', 'fullDuplexStreamed'])('in mode %s', (mode) => {
  it.each(faults)('%s refuses the request by default', async (_, behaviour) => {
    const { port } = await processing(modes(mode))
    processor.behaviour = behaviour
    const reply = await post(port)
    expect([reply.status, reply.text]).toEqual([500, 'external processing failed'])
  })

  it.each(faults)('%s does not prevent the request with failOpen', async (_, behaviour) => {
    const { port } = await processing({ ...modes(mode), ...failOpen })
    processor.behaviour = behaviour
    const reply = await post(port)
    expect([reply.status, reply.text, bodies]).toEqual([200, 'answer', ['hello']])
  })
})

describe('a processor', () => {
  it('that is not reachable is a failure, and one that returns is used', async () => {
    const own = await startProcessor(each((message) => unchanged(message, true)))
    const closed = await processing({ host: own.host })
    expect((await post(closed.port)).status).toBe(200)
    await own.stop()
    expect((await post(closed.port)).status).toBe(500)
    await own.start()
    await until('the processor is used again', async () => (await post(closed.port)).status === 200)
    const open = await processing({ host: own.host, ...failOpen })
    await own.stop()
    expect(await post(open.port, 'x'.repeat(100_000))).toMatchObject({ status: 200, text: 'answer' })
    expect(bodies.at(-1)).toHaveLength(100_000)
  })

  it('that sends bytes of no message, or too large ones, is a failure', async () => {
    const frames = [Buffer.from([0, 0, 0, 0, 2, 0x12, 0x7f]), Buffer.from([0, 0x7f, 0, 0, 0])]
    const server = createHttp2Server()
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => {})
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      stream.write(frames.shift())
    })
    server.on('session', (session) => endAfter('test', () => session.destroy()))
    const port = await listening(server)
    endAfter('test', () => void server.close())
    const gateway = await processing({ host: `127.0.0.1:${port}` })
    expect((await post(gateway.port)).status).toBe(500)
    expect((await post(gateway.port)).status).toBe(500)
  })

  it('that fails during the response refuses it, or leaves it unchanged', async () => {
    const failing = each((message) =>
      message.responseHeaders ? { requestTrailers: {} } : unchanged(message, true),
    )
    const closed = await processing()
    processor.behaviour = failing
    expect((await post(closed.port)).status).toBe(500)
    const open = await processing(failOpen)
    expect((await post(open.port)).text).toBe('answer')
  })

  it('that fails during the body of the response aborts it', async () => {
    const { port } = await processing(modes('fullDuplexStreamed'))
    processor.behaviour = each((message) => {
      if (message.responseBody) return { requestTrailers: {} }
      return unchanged(message, true)
    })
    await expect(call(port, '/')).rejects.toThrow()
  })

  it('has a limited number of streams', async () => {
    const { port } = await processing({ maxStreams: 1, messageTimeout: '5s' })
    const release = Promise.withResolvers<void>()
    processor.behaviour = async function* slow(messages) {
      await release.promise
      yield* each((message) => unchanged(message, true))(messages, {
        headers: new Headers(),
        ended: new AbortController().signal,
      })
    }
    const first = call(port, '/')
    await until('the first stream is open', () => processor.open() === 1)
    expect((await call(port, '/')).status).toBe(500)
    release.resolve()
    expect((await first).status).toBe(200)
    await until('another stream is permitted', async () => (await call(port, '/')).status === 200)
  })

  it('that does not read is limited in time', async () => {
    const { port } = await processing()
    processor.behaviour = async function* deaf() {
      yield* []
      await new Promise(() => {})
    }
    expect((await post(port, 'x'.repeat(5_000_000))).status).toBe(500)
  })
})

describe('streams', () => {
  it('end when the client disconnects, in each phase', async () => {
    const { port, gateway } = await processing({ messageTimeout: '10s' })
    for (const phase of ['requestHeaders', 'responseHeaders', 'responseBody'] as const) {
      processor.behaviour = each((message) => {
        const isAwaited = message[phase] ?? (phase === 'responseHeaders' ? message.responseBody : undefined)
        return isAwaited ? undefined : unchanged(message, true)
      })
      processor.seen.length = 0
      const client = request({ port, host: '127.0.0.1', path: '/' }).on('error', () => {})
      client.end()
      await until(`${phase} are seen`, () => processor.seen.some((message) => message[phase] !== undefined))
      expect([phase, processor.open()]).toEqual([phase, 1])
      client.destroy()
      await until('the stream ends', () => processor.open() === 0)
    }
    await until('none is counted', async () =>
      /tollgate_ext_proc_streams_open\{[^}]*\} 0/.test(await gateway.metrics()),
    )
  })

  it('end when the upstream aborts its response', async () => {
    const { port } = await processing({ messageTimeout: '10s' })
    behave = (_, response) => {
      response.writeHead(200)
      response.write('part')
      setImmediate(() => response.destroy())
    }
    await expect(call(port, '/')).rejects.toThrow()
    await until('the stream ends', () => processor.open() === 0)
  })

  it('stop a sender whose receiver does not read', async () => {
    const { port, gateway } = await processing({ messageTimeout: '10s' })
    let sent = 0
    behave = (_, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      const write = () => {
        let accepts = true
        while (accepts) {
          accepts = response.write(chunk)
          sent += chunk.byteLength
        }
      }
      response.on('drain', write)
      response.on('error', () => {})
      write()
    }
    const client = request({ port, host: '127.0.0.1', path: '/' }).on('error', () => {})
    client.end()
    const response = await new Promise<IncomingMessage>((resolve) => client.on('response', resolve))
    response.on('error', () => {})
    response.pause()
    let before = -1
    await until('the sender pauses', async () => {
      const isSame = sent === before
      before = sent
      await new Promise((resolve) => setTimeout(resolve, 250))
      return isSame && sent > 0
    })
    expect(sent).toBeLessThan(100_000_000)
    expect(gateway.child.exitCode).toBeNull()
    client.destroy()
    await until('the stream ends', () => processor.open() === 0)
  })

  it('continue during reloads, over one connection', async () => {
    const own = await startProcessor(each((message) => unchanged(message, true)))
    const { port, gateway } = await processing({ host: own.host, messageTimeout: '10s' })
    let done = false
    const statuses = new Set<number>()
    const load = Array.from({ length: 4 }, async () => {
      while (!done) statuses.add((await post(port)).status)
    })
    for (const maxStreams of [100, 200, 300]) {
      await gateway.reload(
        routingConfig(port, routesTo({ host: own.host, messageTimeout: '10s', maxStreams })),
      )
    }
    current = undefined
    done = true
    await Promise.all(load)
    expect([...statuses]).toEqual([200])
    expect(own.connections).toBe(1)
    await until('the streams end', () => own.open() === 0)
  })
})

it('a closed port is a failure at once', async () => {
  const { port } = await processing({ host: `127.0.0.1:${await freePort()}`, messageTimeout: '10s' })
  expect((await post(port)).status).toBe(500)
})
