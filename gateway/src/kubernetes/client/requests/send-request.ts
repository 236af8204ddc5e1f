import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { messageOf } from '../../../lib/thrown.ts'
import type { ApiAccess } from '../access/access.ts'
import { ApiError, refusal } from './api-error.ts'

export type ApiRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path and query. */
  readonly path: string
  readonly body?: unknown
  readonly contentType?: string
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  readonly maxBytes?: number
}

/** Requests to one API server. Every failure is an `ApiError`. */
export type SendRequest = {
  /** Sends a request and reads the JSON object of its response. */
  call(request: ApiRequest): Promise<JsonObject>
  /** Sends a request whose response is a stream without end. The time limit applies to its headers. */
  open(request: ApiRequest): Promise<IncomingMessage>
  /** Closes all connections. */
  close(): void
}

/** The response exceeded its limit. */
export const tooLargeReason = 'ResponseTooLarge'

const defaultTimeoutMs = 30_000
const defaultMaxBytes = 32 * 1024 * 1024
const maxErrorBytes = 64 * 1024
/** The API server derives the field manager of writes without one from it; audit logs contain it. */
const userAgent = 'tollgate-controller'
/** Calls at a time; watches have connections of their own. */
const maxCalls = 32
/** With the probes of the runtime, a connection to a lost server ends after about 25 seconds. */
const tcpKeepAliveMs = 15_000

export function createSendRequest(access: ApiAccess): SendRequest {
  const tls = {
    ...(access.authority !== undefined && { ca: access.authority }),
    ...(access.certificate ?? {}),
    ...(access.serverName !== undefined && { servername: access.serverName }),
  }
  const isTls = access.server.protocol === 'https:'
  const connections = { keepAlive: true, keepAliveMsecs: tcpKeepAliveMs }
  const agents = isTls
    ? {
        calls: new HttpsAgent({ ...connections, ...tls, maxSockets: maxCalls }),
        streams: new HttpsAgent({ ...connections, ...tls }),
      }
    : {
        calls: new HttpAgent({ ...connections, maxSockets: maxCalls }),
        streams: new HttpAgent(connections),
      }
  const send = isTls ? httpsRequest : httpRequest

  function start(
    { method, path, body, contentType, signal }: ApiRequest,
    agent: HttpAgent | HttpsAgent,
    limit: AbortSignal,
  ): Promise<IncomingMessage> {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers: Record<string, string | number> = { accept: 'application/json', 'user-agent': userAgent }
    if (text !== undefined) {
      headers['content-type'] = contentType ?? 'application/json'
      headers['content-length'] = Buffer.byteLength(text)
    }
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    try {
      signal?.throwIfAborted()
      const token = access.token?.read()
      if (token !== undefined) headers['authorization'] = `Bearer ${token}`
      const signals = signal === undefined ? limit : AbortSignal.any([signal, limit])
      const sent = send(urlOf(path, access.server), { method, headers, agent, signal: signals }, resolve)
      sent.on('error', reject)
      sent.on('socket', (socket) => socket.setKeepAlive(true, tcpKeepAliveMs))
      sent.end(text)
    } catch (error) {
      reject(error)
    }
    return promise
  }

  /** Reads a refusal, which is small, and throws it. */
  async function refuse(call: string, response: IncomingMessage): Promise<never> {
    const status = response.statusCode ?? 0
    if (status === 401) access.token?.expire()
    const body = await readText(call, response, maxErrorBytes).catch(() => '')
    throw refusal(call, status, body, response.headers['retry-after'])
  }

  return {
    async call(request) {
      const call = describe(request)
      const limit = AbortSignal.timeout(request.timeoutMs ?? defaultTimeoutMs)
      try {
        const response = await start(request, agents.calls, limit)
        if ((response.statusCode ?? 0) >= 300) return await refuse(call, response)
        const text = await readText(call, response, request.maxBytes ?? defaultMaxBytes)
        return text === '' ? {} : parseObject(call, text)
      } catch (error) {
        throw asApiError(call, error, limit)
      }
    },
    async open(request) {
      const call = describe(request)
      const limit = new AbortController()
      const timer = setTimeout(() => limit.abort(), request.timeoutMs ?? defaultTimeoutMs)
      try {
        const response = await start(request, agents.streams, limit.signal)
        if ((response.statusCode ?? 0) >= 300) return await refuse(call, response)
        return response
      } catch (error) {
        throw asApiError(call, error, limit.signal)
      } finally {
        clearTimeout(timer)
      }
    },
    close() {
      agents.calls.destroy()
      agents.streams.destroy()
    },
  }
}

/** Requests that end at a signal. */
export function sendUntil({ call, open, close }: SendRequest, signal: AbortSignal): SendRequest {
  const bounded = (request: ApiRequest): ApiRequest => ({
    ...request,
    signal: request.signal === undefined ? signal : AbortSignal.any([request.signal, signal]),
  })
  return {
    call: (request) => call(bounded(request)),
    open: (request) => open(bounded(request)),
    close,
  }
}

/** Path of the address and path of the request: an address may be that of a reverse proxy. */
function urlOf(path: string, server: URL): URL {
  return new URL(server.pathname.replace(/\/+$/, '') + path, server)
}

/** Method and path of a call, for messages. */
function describe({ method, path }: ApiRequest): string {
  const query = path.indexOf('?')
  return `${method} ${query < 0 ? path : path.slice(0, query)}`
}

async function readText(call: string, response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue
    length += chunk.length
    if (length > maxBytes) {
      response.destroy()
      const reason = tooLargeReason
      throw new ApiError({ status: 0, reason }, `${call}: response is larger than ${maxBytes} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length).toString()
}

function parseObject(call: string, text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new ApiError({ status: 0 }, `${call}: response is not JSON`)
  }
  if (isJsonObject(value)) return value
  throw new ApiError({ status: 0 }, `${call}: response is not a JSON object`)
}

function asApiError(call: string, error: unknown, limit: AbortSignal): ApiError {
  if (error instanceof ApiError) return error
  const text = limit.aborted ? 'no response before the time limit' : messageOf(error)
  return new ApiError({ status: 0 }, `${call}: ${text}`, { cause: error })
}
