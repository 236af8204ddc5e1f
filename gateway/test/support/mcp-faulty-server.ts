import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import {
  type Answer,
  type MockServer,
  member,
  type SeenRequest,
  sendJson,
  startMockServer,
} from './mock-server.ts'

/** The ways in which a call of a tool of that name goes wrong. */
export const httpFaults = [
  'dies',
  'dies before the head',
  'garbage',
  'bad-json',
  'bad-event',
  'flood',
  'wrong-id',
  'empty',
  'fails',
  'array',
] as const

export type FaultyServer = MockServer & {
  /** Sessions that were opened and not ended. */
  sessions: Set<string>
  /** Streams of calls that are still open. */
  open(): number
}

/**
 * An MCP server over streamable HTTP whose tools are its faults; `tools/call` of any other name answers with
 * that name.
 */
export async function startFaultyServer(): Promise<FaultyServer> {
  const sessions = new Set<string>()
  let open = 0
  const answer: Answer = (request, response) => {
    if (request.method === 'DELETE') {
      sessions.delete(String(request.headers['mcp-session-id']))
      response.writeHead(200).end()
    } else if (request.method === 'GET') response.writeHead(405).end()
    else if (member(request.json, 'id') === undefined) response.writeHead(202).end()
    else if (member(request.json, 'method') === 'initialize') initialize(request, response)
    else if (!sessions.has(String(request.headers['mcp-session-id'])))
      response.writeHead(404).end('no session')
    else {
      open += 1
      response.on('close', () => {
        open -= 1
      })
      call(request, response)
    }
  }

  function initialize(request: SeenRequest, response: ServerResponse): void {
    const session = randomUUID()
    sessions.add(session)
    const body = {
      jsonrpc: '2.0',
      id: member(request.json, 'id'),
      result: {
        protocolVersion: member(request.json, 'params', 'protocolVersion'),
        capabilities: { tools: {} },
        serverInfo: { name: 'faulty', version: '1' },
      },
    }
    sendJson(response, { status: 200, body, headers: { 'mcp-session-id': session } })
  }

  return { ...(await startMockServer(answer)), sessions, open: () => open }
}

function call({ json }: SeenRequest, response: ServerResponse): void {
  const id = member(json, 'id')
  const name = String(member(json, 'params', 'name'))
  const result = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: name }] } }
  const progress = { method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }
  const event = (message: unknown) => `event: message\ndata: ${JSON.stringify(message)}\n\n`
  const stream = () => response.writeHead(200, { 'content-type': 'text/event-stream' })
  switch (name) {
    case 'dies':
      stream().write(event({ jsonrpc: '2.0', ...progress }), () => response.destroy())
      break
    case 'dies before the head':
      response.destroy()
      break
    case 'garbage':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>It works!</h1>')
      break
    case 'bad-json':
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc": oops')
      break
    case 'array':
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify([result, 1, null]))
      break
    case 'bad-event':
      stream().end('data: {"jsonrpc": oops\n\n')
      break
    case 'hangs':
      break
    case 'streams':
      stream().write(event({ jsonrpc: '2.0', ...progress }))
      break
    case 'flood':
      flood(stream(), 'data: ', 'x'.repeat(64 * 1024))
      break
    case 'chatter':
      flood(stream(), '', event({ jsonrpc: '2.0', ...progress, padding: 'x'.repeat(16 * 1024) }))
      break
    case 'wrong-id':
      stream().end(event({ ...result, id: 'of-nobody' }))
      break
    case 'empty':
      response.writeHead(200, { 'content-type': 'application/json' }).end()
      break
    case 'fails':
      response.writeHead(500, { 'content-type': 'text/plain' }).end('internal trouble')
      break
    default:
      sendJson(response, { status: 200, body: result })
  }
}

/** Sends without end, as fast as it is read. */
function flood(response: ServerResponse, first: string, piece: string): void {
  response.write(first)
  const pump = () => {
    if (response.destroyed) return
    if (response.write(piece)) setImmediate(pump)
    else response.once('drain', pump)
  }
  pump()
}
