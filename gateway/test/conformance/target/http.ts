import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type EventStore,
  StreamableHTTPServerTransport,
} from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { createConformanceServer } from './server.ts'

export type HttpTarget = {
  url: string
  /** Sessions that are open. */
  sessions(): number
  close(): Promise<void>
}

/**
 * Serves sessions of the conformance target over streamable HTTP with resumable streams, on a free loopback
 * port.
 */
export async function serveHttp(): Promise<HttpTarget> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id']
    if (typeof id === 'string') {
      const transport = sessions.get(id)
      if (transport !== undefined) return transport.handleRequest(request, response)
      response.writeHead(404, { 'content-type': 'application/json' })
      const error = { code: -32001, message: 'Session not found' }
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
      return
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: createEventStore(),
      retryInterval: 100,
      onsessioninitialized: (session) => {
        sessions.set(session, transport)
      },
      onsessionclosed: (session) => {
        sessions.delete(session)
      },
    })
    await createConformanceServer().connect(transport)
    return transport.handleRequest(request, response)
  }

  const server = createServer((request, response) => {
    // Otherwise any web page could reach it (MCP 2025-11-25, Transports, Security Warning).
    if (!isLocal(request.headers.host) || !isLocal(originHost(request.headers.origin))) {
      response.writeHead(403).end('forbidden host or origin')
      return
    }
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  const port = await new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(address !== null && typeof address === 'object' ? address.port : 0)
    })
  })
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    sessions: () => sessions.size,
    async close() {
      await Promise.all([...sessions.values()].map((transport) => transport.close()))
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function isLocal(host: string | undefined): boolean {
  return host === undefined || /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host)
}

function originHost(origin: string | undefined): string | undefined {
  return origin === undefined ? undefined : URL.canParse(origin) ? new URL(origin).host : origin
}

/** Keeps all events of a session. */
function createEventStore(): EventStore {
  const events: { stream: string; message: JSONRPCMessage }[] = []
  return {
    async storeEvent(stream, message) {
      events.push({ stream, message })
      return `event-${events.length - 1}`
    },
    async getStreamIdForEventId(id) {
      return events[indexOf(id)]?.stream
    },
    async replayEventsAfter(id, { send }) {
      const stream = events[indexOf(id)]?.stream ?? ''
      for (const [index, event] of events.entries()) {
        // The first event of a stream only gives it an id: there is no message in it.
        if (index <= indexOf(id) || event.stream !== stream || !('jsonrpc' in event.message)) continue
        await send(`event-${index}`, event.message)
      }
      return stream
    },
  }
}

function indexOf(eventId: string): number {
  return Number(eventId.slice('event-'.length))
}
