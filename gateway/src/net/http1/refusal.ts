import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type HttpServerLimits, targetTooLongMessage } from '../http/incoming-request.ts'
import { lingerMs } from './exchange.ts'

/** Rejection of a request before routing. */
export type Refusal = { readonly status: number; readonly message: string }

const otherVersion: Refusal = {
  status: 505,
  message: 'HTTP version is not supported: use HTTP/1.1 or HTTP/1.0',
}
const longTarget: Refusal = { status: 414, message: targetTooLongMessage }
const manyHeaders: Refusal = { status: 431, message: 'the request has too many headers' }
const codingInHttp10: Refusal = { status: 400, message: 'HTTP/1.0 has no transfer codings' }
const otherCoding: Refusal = { status: 501, message: 'transfer coding is not supported: use chunked' }

/**
 * Returns the rejection of a request that the parser accepts but that is not routed. The parser also accepts
 * HTTP/0.9 and 2.0; removes `chunked` and retains other transfer codings on the body, which would be
 * forwarded without their label (RFC 9112 section 6.1); and accepts transfer codings in HTTP/1.0, which an
 * intermediary may ignore.
 */
export function refusalOf(
  { httpVersion, url, headers, rawHeaders }: IncomingMessage,
  { maxTargetBytes }: HttpServerLimits,
  maxHeaders: number | undefined,
): Refusal | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return otherVersion
  if (url !== undefined && url.length > maxTargetBytes) return longTarget
  if (maxHeaders !== undefined && rawHeaders.length > 2 * maxHeaders) return manyHeaders
  const coding = headers['transfer-encoding']
  if (coding === undefined) return undefined
  if (httpVersion === '1.0') return codingInHttp10
  return coding.toLowerCase() === 'chunked' ? undefined : otherCoding
}

/** Responds and closes the connection, because the framing of later data is uncertain. */
export function refuse(response: ServerResponse, { status, message }: Refusal): void {
  response.writeHead(status, headOf(message))
  response.end(message)
}

/** `refuse` for a connection without a usable parser. */
export function refuseSocket(socket: Socket, { status, message }: Refusal): void {
  const fields = Object.entries(headOf(message)).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.on('error', ignore)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join('')}\r\n${message}`)
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.on('close', () => clearTimeout(timer))
}

function headOf(message: string) {
  return {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': message.length,
    connection: 'close',
  }
}

/** A reset connection also emits `close`; nothing waits for this error. */
function ignore(): void {}
