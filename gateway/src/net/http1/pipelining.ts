import type { IncomingMessage } from 'node:http'
import { handleExchange } from './exchange.ts'
import type { Http1Connection, Http1Edge, PipelinedRequest } from './server-state.ts'

/** Queued requests of one connection. The parser reads all received data, which may contain thousands. */
const maxHeldRequests = 112

/**
 * Handles a request, or queues it until fewer requests of its connection are active. Clients may pipeline
 * requests (RFC 9112 section 9.3.2). Reading continues, because only reading detects a disconnect; with too
 * many queued requests the connection closes.
 */
export function enqueueRequest({ request, response, mode }: PipelinedRequest, edge: Http1Edge): void {
  const connection = edge.connections.get(request.socket)
  if (!connection) {
    response.destroy()
    return
  }
  if (connection.last !== undefined) {
    // The connection closes before a response to this request could be sent.
    if (connection.last !== request) return
    response.shouldKeepAlive = false
  }
  const { pipelined } = connection
  const running = connection.underWay - pipelined.length
  if (pipelined.length >= maxHeldRequests) {
    edge.requests.refused()
    pipelined.length = 0
    // The parser continues with data received earlier.
    connection.last = request
    request.socket.destroy()
    return
  }
  connection.underWay += 1
  if (running < edge.maxPipelinedRequests) {
    handleExchange(request, response, edge, {
      connection,
      mode,
      onOver: () => onOver(connection, request, edge),
    })
    return
  }
  pipelined.push({ request, response, mode })
}

/** Starts the next queued request after the end of one. */
function onOver(connection: Http1Connection, { socket }: IncomingMessage, edge: Http1Edge): void {
  connection.underWay -= 1
  const next = connection.pipelined.shift()
  if (next === undefined) {
    // The response began before the connection reached its age.
    if (connection.isEnding && connection.underWay === 0) socket.destroySoon()
    return
  }
  const { request, response, mode } = next
  if (request.socket.destroyed) {
    connection.pipelined.length = 0
    return
  }
  handleExchange(request, response, edge, {
    connection,
    mode,
    onOver: () => onOver(connection, request, edge),
  })
}
