import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { endAfter, type Lifetime } from './cleanup.ts'

/** A request received by an upstream. */
export type SeenRequest = {
  method: string
  /** With its query. */
  path: string
  headers: IncomingHttpHeaders
  /** The body as it came, decoded as UTF-8. */
  text: string
  bytes: Buffer
  /** The body as JSON; undefined when it is none. */
  json: unknown
  /** True once the other side left before the answer was complete. */
  aborted: boolean
}

export type MockServer = {
  port: number
  url: string
  seen: SeenRequest[]
  /** Answers the next requests instead of the mock's own behaviour, one each. */
  next(...answers: Answer[]): void
}

export type Answer = (request: SeenRequest, response: ServerResponse) => void

export async function startMockServer(answer: Answer, lifetime: Lifetime = 'test'): Promise<MockServer> {
  const seen: SeenRequest[] = []
  const queue: Answer[] = []
  const server = createServer(async (incoming, response) => {
    const request = await record(incoming)
    seen.push(request)
    response.on('close', () => {
      request.aborted = !response.writableFinished
    })
    const chosen = queue.shift() ?? answer
    try {
      await chosen(request, response)
    } catch (error) {
      // A broken mock must not look like a stalled upstream: the response contains the reason.
      response.writeHead(599, { 'content-type': 'text/plain' }).end(`the mock failed: ${error}`)
    }
  })
  const port = await new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
  endAfter(lifetime, () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    seen,
    next: (...answers) => {
      queue.push(...answers)
    },
  }
}

async function record(incoming: IncomingMessage): Promise<SeenRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString('utf8')
  const { method = '', url: path = '', headers } = incoming
  return { method, path, headers, text, bytes, json: parsed(text), aborted: false }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An answer of JSON with a status. */
export function jsonAnswer(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (_, response) => sendJson(response, { status, body, headers })
}

export function sendJson(
  response: ServerResponse,
  { status, body, headers = {} }: { status: number; body: unknown; headers?: Record<string, string> },
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.byteLength,
    ...headers,
  })
  response.end(bytes)
}

/** Writes events one by one with a pause between them, as far as the client listens. */
export function sendEvents(
  response: ServerResponse,
  events: readonly string[],
  options: { pauseMs?: number; cutAfter?: number | undefined } = {},
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  response.flushHeaders()
  let index = 0
  const step = () => {
    if (response.destroyed) return
    if (options.cutAfter === index) {
      response.destroy()
      return
    }
    const event = events[index]
    if (event === undefined) {
      response.end()
      return
    }
    index += 1
    response.write(event)
    if (options.pauseMs) setTimeout(step, options.pauseMs)
    else setImmediate(step)
  }
  step()
}

/** A property of unknown JSON; undefined where there is none. */
export function member(value: unknown, ...path: (string | number)[]): unknown {
  let current = value
  for (const key of path) {
    if (typeof current !== 'object' || current === null) return undefined
    current = Reflect.get(current, key)
  }
  return current
}
