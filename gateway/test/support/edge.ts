import { systemClock } from '../../src/lib/clock.ts'
import { type Body, type BodySink, type BodySource, isSource, readAll } from '../../src/net/http/body.ts'
import type { Headers } from '../../src/net/http/headers.ts'
import {
  type Delivery,
  defaultServerLimits,
  type HttpServerLimits,
  type IncomingRequest,
} from '../../src/net/http/incoming-request.ts'
import type { Reply } from '../../src/net/http-client/send.ts'
import type { ConnectionHandler } from '../../src/net/listener/connection-handler.ts'
import type { ConnectionSettings } from '../../src/net/listener/connection-settings.ts'
import { type ListeningServer, listen } from '../../src/net/listener/listener.ts'
import type { ServerTls } from '../../src/net/tls/server-tls.ts'
import { defaultAdmission } from './admission.ts'
import { endAfter } from './cleanup.ts'

export type Answer = (request: IncomingRequest) => Reply | Promise<Reply>

export type EdgeServer = {
  readonly server: ListeningServer
  readonly port: number
  /** Requests that reached the pipeline, with their delivery results, in order of completion. */
  readonly requests: IncomingRequest[]
  readonly deliveries: Delivery[]
  /** Changes the handler of later connections. */
  serve(handler: ConnectionHandler | undefined): void
}

type EdgeOptions = { limits?: Partial<HttpServerLimits>; tls?: ServerTls; settings?: ConnectionSettings }

/** The edge alone, in this process: listens on a free port and answers without a pipeline behind it. */
export async function startEdge(
  answer: Answer,
  { limits = {}, tls, settings }: EdgeOptions = {},
): Promise<EdgeServer> {
  const requests: IncomingRequest[] = []
  const deliveries: Delivery[] = []
  let handler: ConnectionHandler | undefined = {
    kind: 'http',
    tls,
    settings,
    handle(request) {
      requests.push(request)
      return {
        reply: Promise.resolve().then(() => answer(request)),
        end: (delivery) => deliveries.push({ ...delivery }),
      }
    },
  }
  const server = await listen({
    admission: defaultAdmission(),
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    limits: { ...defaultServerLimits, ...limits },
    serve: () => handler,
  })
  endAfter('test', () => server.close())
  return {
    server,
    port: server.port,
    requests,
    deliveries,
    serve(next) {
      handler = next
    },
  }
}

/** A reply with a short text. */
export function text(body: string, headers: Headers = {}): Reply {
  return { status: 200, headers: { 'content-type': 'text/plain', ...headers }, body: Buffer.from(body) }
}

export async function bodyText(body: Body): Promise<string> {
  return (await readAll(body, 64 * 1024 * 1024, 'request_too_large')).toString()
}

/** Waits for the end of a body with its trailers. */
export function bodyWithTrailers(body: Body): Promise<{ text: string; trailers: Headers | undefined }> {
  return new Promise((resolve, reject) => {
    if (!isSource(body)) {
      resolve({ text: '', trailers: undefined })
      return
    }
    let received = ''
    body.start({
      write(chunk) {
        received += Buffer.from(chunk).toString()
        return true
      },
      end: (trailers) => resolve({ text: received, trailers }),
      fail: reject,
    })
  })
}

export type PushedBody = BodySource & {
  /** Undefined until somebody reads. */
  sink: BodySink | undefined
  resumed: number
  cancelled: boolean
}

/** A body that the test pushes itself. */
export function pushedBody(): PushedBody {
  const body: PushedBody = {
    sink: undefined,
    resumed: 0,
    cancelled: false,
    start(sink) {
      body.sink = sink
    },
    resume() {
      body.resumed += 1
    },
    cancel() {
      body.cancelled = true
    },
  }
  return body
}
