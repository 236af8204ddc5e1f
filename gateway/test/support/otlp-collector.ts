import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { endAfter, type Lifetime } from './cleanup.ts'
import {
  type DecodedLog,
  type DecodedMetric,
  type DecodedSpan,
  decodeLogs,
  decodeMetrics,
  decodeSpans,
} from './otlp-decoder.ts'
import { until } from './wait.ts'

/** Behaviour of the collector. */
export type CollectorMode =
  | 'accepts'
  /** Status 503, or UNAVAILABLE. */
  | 'unavailable'
  /** Every second request is unavailable. */
  | 'flaps'
  /** Status 400, or INVALID_ARGUMENT. */
  | 'refuses'
  /** Accepts all items but one (partial success). */
  | 'rejects one'
  /** Never responds. */
  | 'hangs'
  /** Accepts with a body that is not a message. */
  | 'garbage'
  /** Accepts with a body without end. */
  | 'huge'

/** OTLP collector over HTTP and over gRPC, which validates each request by the strict decoder. */
export type OtlpCollector = {
  /** `host:port` of gRPC, and of HTTP. */
  readonly grpc: string
  readonly http: string
  mode: CollectorMode
  readonly spans: DecodedSpan[]
  readonly logs: DecodedLog[]
  readonly metrics: DecodedMetric[]
  /** Path and headers of each export request. */
  readonly requests: { path: string; headers: IncomingHttpHeaders }[]
  /** Violations of the schema; empty for a correct exporter. */
  readonly violations: string[]
  /** The accepted bytes of all requests as text, for searches. */
  text(): string
  /** The spans once there are so many. */
  received(count: number): Promise<DecodedSpan[]>
}

/** Starts a collector. */
export async function otlpCollector(lifetime: Lifetime = 'test'): Promise<OtlpCollector> {
  const texts: string[] = []
  let count = 0
  const collector: OtlpCollector = {
    ...{
      grpc: '',
      http: '',
      mode: 'accepts',
      spans: [],
      logs: [],
      metrics: [],
      requests: [],
      violations: [],
    },
    text: () => texts.join('\n'),
    received: (expected) =>
      until(`${expected} spans at the collector`, () => {
        if (collector.violations.length > 0) throw new Error(collector.violations.join('; '))
        return collector.spans.length >= expected && collector.spans
      }),
  }

  function accept(path: string, headers: IncomingHttpHeaders, body: Buffer): void {
    collector.requests.push({ path, headers })
    texts.push(body.toString('latin1'))
    try {
      if (/trace/i.test(path) || path.startsWith('/api/')) collector.spans.push(...decodeSpans(body))
      else if (/log/i.test(path)) collector.logs.push(...decodeLogs(body))
      else collector.metrics.push(...decodeMetrics(body))
    } catch (error) {
      collector.violations.push(`${path}: ${String(error)}`)
    }
  }

  /** The mode of the next request. */
  function nextMode(): CollectorMode {
    count += 1
    if (collector.mode !== 'flaps') return collector.mode
    return count % 2 === 1 ? 'unavailable' : 'accepts'
  }

  const http = createHttpServer(async (request, response) => {
    const body = await readBody(request)
    const mode = nextMode()
    if (mode === 'hangs') return
    if (mode === 'unavailable' || mode === 'refuses') {
      response.writeHead(mode === 'refuses' ? 400 : 503).end()
      return
    }
    accept(request.url ?? '', request.headers, body)
    response.writeHead(200, { 'content-type': 'application/x-protobuf' })
    if (mode === 'huge') {
      const more = setInterval(() => response.write(Buffer.alloc(64 * 1024)), 1)
      response.on('close', () => clearInterval(more))
    } else response.end(responseOf(mode))
  })
  const grpc = createHttp2Server()
  grpc.on('stream', (stream: ServerHttp2Stream, headers) => {
    stream.on('error', () => {})
    void readBody(stream).then((framed) => {
      const mode = nextMode()
      if (mode === 'hangs' || stream.destroyed) return
      const refused = mode === 'unavailable' ? '14' : mode === 'refuses' ? '3' : undefined
      if (refused === undefined) accept(String(headers[':path']), headers, framed.subarray(5))
      respondGrpc(stream, refused ?? '0', responseOf(mode))
    })
  })
  return Object.assign(collector, { http: await listen(http, lifetime), grpc: await listen(grpc, lifetime) })
}

function respondGrpc(stream: ServerHttp2Stream, status: string, message: Buffer): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }))
  if (status !== '0') {
    stream.end()
    return
  }
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.byteLength, 1)
  stream.end(Buffer.concat([head, message]))
}

/** `partial_success { rejected_spans: 1, error_message: "no" }`, garbage, or an empty message. */
function responseOf(mode: CollectorMode): Buffer {
  if (mode === 'rejects one') return Buffer.from('0a0608011202' + '6e6f', 'hex')
  return mode === 'garbage' ? Buffer.from('ffffffffff', 'hex') : Buffer.alloc(0)
}

async function readBody(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of stream) chunks.push(chunk)
  } catch {
    // The client went away.
  }
  return Buffer.concat(chunks)
}

async function listen(
  server: Server & { closeAllConnections?: () => void },
  lifetime: Lifetime,
): Promise<string> {
  const open = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endAfter(lifetime, () => {
    for (const socket of open) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
