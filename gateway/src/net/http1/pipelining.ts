import type { Http1Connection, Http1Edge, PipelinedRequest } from './edge.ts'
import { handleExchange } from './exchange.ts'

/** Held requests of one connection. The parser takes apart all that has arrived, which may be thousands. */
const maxHeldRequests = 112

/**
 * Answers a request, or holds it until fewer of its connection are under way. Clients may send requests without waiting for
 * answers (RFC 9112 section 9.3.2). The connection is read on, because nothing else reports that the client has left, and closed if too
 * many requests are pipelined.
 */
export function enqueueRequest({ request, response, mode }: PipelinedRequest, edge: Http1Edge): void {
  const connection = edge.connections.get(request.socket)
  if (!connection) {
    response.destroy()
    return
  }
  if (connection.last !== undefined) {
    // It closes before an answer to this one could be sent.
    if (connection.last !== request) return
    response.shouldKeepAlive = false
  }
  const { pipelined } = connection
  const running = connection.underWay - pipelined.length
  if (pipelined.length >= maxHeldRequests) {
    edge.requests.refused()
    pipelined.length = 0
    // The parser goes on with what has arrived.
    connection.last = request
    request.socket.destroy()
    return
  }
  connection.underWay += 1
  if (running < edge.maxPipelinedRequests) {
    handleExchange(request, response, edge, { connection, mode, onOver: () => onOver(connection, edge) })
    return
  }
  pipelined.push({ request, response, mode })
}

/** A request of the connection is over: the next one begins. */
function onOver(connection: Http1Connection, edge: Http1Edge): void {
  connection.underWay -= 1
  const next = connection.pipelined.shift()
  if (next === undefined) return
  const { request, response, mode } = next
  if (request.socket.destroyed) {
    connection.pipelined.length = 0
    return
  }
  handleExchange(request, response, edge, { connection, mode, onOver: () => onOver(connection, edge) })
}
