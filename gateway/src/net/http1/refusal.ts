import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type HttpServerLimits, targetTooLongMessage } from '../http/incoming-request.ts'
import { lingerMs } from './exchange.ts'

/** What is wrong with a request before it is known what it asks for. */
export type Refusal = { readonly status: number; readonly message: string }

const otherVersion: Refusal = { status: 505, message: 'HTTP/1.0 and HTTP/1.1 are served here' }
const longTarget: Refusal = { status: 414, message: targetTooLongMessage }
const codingInHttp10: Refusal = { status: 400, message: 'HTTP/1.0 has no transfer codings' }
const otherCoding: Refusal = { status: 501, message: 'the only transfer coding that is read is chunked' }

/**
 * Why a request that the parser accepts is not answered by a route. The parser also accepts HTTP/0.9 and 2.0; takes off
 * `chunked` and leaves other transfer codings on the body, which would go on without a word of them (RFC 9112 section
 * 6.1); and believes one in HTTP/1.0, which a server between this one and the client may not.
 */
export function refusalOf(
  { httpVersion, url, headers }: IncomingMessage,
  { maxTargetBytes }: HttpServerLimits,
): Refusal | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return otherVersion
  if (url !== undefined && url.length > maxTargetBytes) return longTarget
  const coding = headers['transfer-encoding']
  if (coding === undefined) return undefined
  if (httpVersion === '1.0') return codingInHttp10
  return coding.toLowerCase() === 'chunked' ? undefined : otherCoding
}

/** Answers and closes: what follows on the connection may not be what it seems. */
export function refuse(response: ServerResponse, { status, message }: Refusal): void {
  response.writeHead(status, headOf(message))
  response.end(message)
}

/** The same for a connection that has left the parser, or made it fail. */
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

/** A reset connection also emits `close`, and nothing waits for this one. */
function ignore(): void {}
