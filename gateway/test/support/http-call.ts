import {
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  request as requestHttp,
} from 'node:http'
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders as Http2Fields,
} from 'node:http2'
import { type Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { connect as connectTls } from 'node:tls'
import { endAfter, type Lifetime } from './cleanup.ts'
import { within } from './wait.ts'

/** TLS of a client: whom it trusts, and the name it asks for; `false` asks for none. */
export type ClientTls = { ca: string; name: string | false; cert?: string; key?: string }

export type CallOptions = {
  method?: string
  headers?: OutgoingHttpHeaders
  /** The `host` field; the address unless given. */
  host?: string
  body?: string | Uint8Array
  tls?: ClientTls
  agent?: HttpAgent | HttpsAgent
}

/** An answer, read to its end. */
export type Answered = {
  status: number
  headers: IncomingHttpHeaders
  text: string
  bytes: Buffer
  trailers: NodeJS.Dict<string>
  /** 1xx answers before it. */
  hints: { status: number; headers: IncomingHttpHeaders }[]
}

/** One HTTP/1.1 request with full control of its head, on a new connection unless `agent` is given. */
export function call(port: number, path: string, options: CallOptions = {}): Promise<Answered> {
  const { method = 'GET', host, body, tls, agent = false } = options
  const headers = { ...options.headers, ...(host !== undefined && { host }) }
  const hints: Answered['hints'] = []
  const answered = new Promise<Answered>((resolve, reject) => {
    const common = { host: '127.0.0.1', port, path, method, headers, agent }
    const request = tls
      ? requestHttps({
          ...common,
          ca: tls.ca,
          ...(tls.cert !== undefined && { cert: tls.cert, key: tls.key }),
          servername: tls.name || '',
          checkServerIdentity: () => undefined,
        })
      : requestHttp(common)
    request.on('information', ({ statusCode, headers }) => hints.push({ status: statusCode, headers }))
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const bytes = Buffer.concat(chunks)
        const { statusCode: status = 0, headers, trailers } = response
        resolve({ status, headers, bytes, text: bytes.toString(), trailers, hints })
      })
    })
    request.end(body)
  })
  return within(`the answer to ${method} ${path}`, answered, 45_000)
}

/** Keeps one connection for all calls made with it. */
export function oneConnection(lifetime: Lifetime = 'test'): HttpAgent {
  const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 })
  endAfter(lifetime, () => agent.destroy())
  return agent
}

export type Http2Answered = {
  status: number
  headers: Http2Fields
  text: string
  trailers: Http2Fields
  hints: Http2Fields[]
}

export type Http2Client = {
  readonly session: ClientHttp2Session
  ask(
    path: string,
    options?: { method?: string; authority?: string; headers?: OutgoingHttpHeaders; body?: string },
  ): Promise<Http2Answered>
}

/** An HTTP/2 connection: over TLS by ALPN, or in the clear with prior knowledge. */
export function http2Client(port: number, tls?: ClientTls): Http2Client {
  const scheme = tls ? 'https' : 'http'
  const session = connectHttp2(`${scheme}://127.0.0.1:${port}`, {
    ...(tls && { ca: tls.ca, servername: tls.name || '', checkServerIdentity: () => undefined }),
  })
  session.on('error', () => {})
  endAfter('test', () => session.destroy())
  return {
    session,
    ask: (path, { method = 'GET', authority, headers = {}, body } = {}) => {
      const answered = new Promise<Http2Answered>((resolve, reject) => {
        const stream = session.request(
          {
            ':method': method,
            ':path': path,
            ...(authority !== undefined && { ':authority': authority }),
            ...headers,
          },
          { endStream: body === undefined },
        )
        let head: Http2Fields = {}
        let trailers: Http2Fields = {}
        const hints: Http2Fields[] = []
        const chunks: Buffer[] = []
        stream.on('headers', (fields: Http2Fields) => hints.push(fields))
        stream.on('response', (fields) => {
          head = fields
        })
        stream.on('trailers', (fields: Http2Fields) => {
          trailers = fields
        })
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('error', reject)
        stream.on('close', () => {
          if (stream.rstCode !== 0) reject(new Error(`the stream was reset with ${stream.rstCode}`))
          const status = Number(head[':status'] ?? 0)
          resolve({ status, headers: head, text: Buffer.concat(chunks).toString(), trailers, hints })
        })
        if (body !== undefined) stream.end(body)
      })
      return within(`the answer to ${method} ${path} over HTTP/2`, answered, 45_000)
    },
  }
}

/** The names in the certificate presented for a server name; fails when the handshake does. */
export function shownNames(port: number, { ca, name }: ClientTls): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connectTls(
      { host: '127.0.0.1', port, ca, servername: name || '', checkServerIdentity: () => undefined },
      () => {
        resolve(socket.getPeerCertificate().subjectaltname)
        socket.end()
      },
    )
    socket.on('error', reject)
  })
}
