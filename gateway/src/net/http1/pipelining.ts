import type { Edge, HeldRequest, Http1Connection } from './edge.ts'
import { answer } from './exchange.ts'

/** Held requests of one connection. The parser takes apart all that has arrived, which may be thousands. */
const maxHeldRequests = 112

/**
 * Answers a request, or holds it until fewer of its connection are under way. Clients may send requests without waiting for
 * answers (RFC 9112 section 9.3.2). The connection is read on, because nothing else reports that the client has left, and closed if too
 * many requests are held.
 */
export function arrive({ request, response, arrival }: HeldRequest, edge: Edge): void {
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
  const { held } = connection
  const running = connection.underWay - held.length
  if (held.length >= maxHeldRequests) {
    edge.requests.refused()
    held.length = 0
    // The parser goes on with what has arrived.
    connection.last = request
    request.socket.destroy()
    return
  }
  connection.underWay += 1
  if (running < edge.maxPipelinedRequests) {
    answer(request, response, edge, { connection, arrival, onOver: () => onOver(connection, edge) })
    return
  }
  held.push({ request, response, arrival })
}

/** A request of the connection is over: the next one begins. */
function onOver(connection: Http1Connection, edge: Edge): void {
  connection.underWay -= 1
  const next = connection.held.shift()
  if (next === undefined) return
  const { request, response, arrival } = next
  if (request.socket.destroyed) {
    connection.held.length = 0
    return
  }
  answer(request, response, edge, { connection, arrival, onOver: () => onOver(connection, edge) })
}
