import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { answerEnding, callId, initializeId, plainTool, protocolVersion, streamingTool } from './workloads.ts'

/**
 * An MCP server of minimal cost: constant responses, selected by substrings of the request. One tool responds
 * with JSON, the other with an event stream of one event, like servers on the official SDK.
 */

const initialized = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: initializeId,
    result: {
      protocolVersion,
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: { name: 'bench', version: '1.0.0' },
    },
  }),
)

const text = 'A gateway stands between clients and servers. '.repeat(20)
const called = `{"jsonrpc":"2.0","id":${callId},"result":{"content":[{"type":"text","text":"${text}"}],${answerEnding}`
const calledJson = Buffer.from(called)
const calledEvent = Buffer.from(`event: message\ndata: ${called}\n\n`)

const inputSchema = { type: 'object' }
const tools = [plainTool, streamingTool].map((name) => ({ name, description: 'Searches.', inputSchema }))
const toolList = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 0, result: { tools } }))

const jsonHeaders = { 'content-type': 'application/json', 'content-length': calledJson.byteLength }
const streamHeaders = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }

let sessions = 0

function answer(request: IncomingMessage, response: ServerResponse): void {
  // Other gateways open a stream of the session; this server has none.
  if (request.method !== 'POST') {
    response.writeHead(405).end()
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.join('')
    if (body.includes('"method":"tools/call"')) call(body, response)
    else if (body.includes('"method":"initialize"')) initialize(body, response)
    else if (body.includes('"method":"tools/list"')) reply(response, withId(toolList, 0, body))
    else response.writeHead(202).end()
  })
}

function call(body: string, response: ServerResponse): void {
  const isOwnId = body.includes(`"id":${callId},`)
  if (body.includes(`"name":"${streamingTool}"`)) {
    response.writeHead(200, streamHeaders).end(isOwnId ? calledEvent : withId(calledEvent, callId, body))
  } else if (isOwnId) response.writeHead(200, jsonHeaders).end(calledJson)
  else reply(response, withId(calledJson, callId, body))
}

/** A constant response with the id of a request, for gateways that number requests themselves. */
function withId(constant: Buffer, id: number, body: string): Buffer {
  const message: { id?: unknown } = JSON.parse(body)
  return Buffer.from(constant.toString().replace(`"id":${id},`, `"id":${JSON.stringify(message.id)},`))
}

function reply(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { ...jsonHeaders, 'content-length': body.byteLength }).end(body)
}

function initialize(body: string, response: ServerResponse): void {
  sessions += 1
  const own = withId(initialized, initializeId, body)
  const headers = { 'content-type': 'application/json', 'content-length': own.byteLength }
  // As long as the ids that servers make: a UUID.
  const id = `00000000-0000-4000-8000-${String(sessions).padStart(12, '0')}`
  response.writeHead(200, { ...headers, 'mcp-session-id': id }).end(own)
}

const server = createServer({ keepAliveTimeout: 60_000 }, answer)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))
