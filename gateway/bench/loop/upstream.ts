import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Providers, an MCP server, a webhook and an OpenAPI document, whose answers are as large as they may be. */
export async function startLoopUpstream(): Promise<{ port: number; close(): void }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => answer(request, Buffer.concat(chunks), response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, close: () => server.close() }
}

const chat = (content: string, more = '') =>
  `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":${content}},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}${more}}`

const large = '32 MiB of words '.repeat(2 * 1024 * 1024)

function answer({ url = '', method }: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const head = body.toString('latin1', 0, 400)
  const json = (text: string, headers = {}) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text)
  if (url === '/openapi.yaml') response.writeHead(200, { 'content-type': 'application/yaml' }).end(openApi())
  else if (url === '/request') json('{"action":{}}')
  else if (url.endsWith('/messages')) {
    const text = head.includes('"claude-large"') ? large : 'b'
    json(
      `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"${text}"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
    )
  } else if (url.endsWith('/embeddings')) {
    const vector = `{"object":"embedding","index":0,"embedding":[${'0.123456789,'.repeat(2_000)}0]}`
    json(
      `{"object":"list","data":[${`${vector},`.repeat(1_990)}${vector}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`,
    )
  } else if (url.endsWith('/mcp')) mcp(method, body, response)
  else if (head.includes('"large-text"')) json(chat(`"${large}"`))
  else if (head.includes('"keys"')) {
    json(chat('"a"', `,"x":{${Array.from({ length: 90_000 }, (_, index) => `"k${index}":0`).join(',')}}`))
  } else if (head.includes('"stream"')) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let index = 0; index < 20; index += 1) {
      response.write(`data: {"choices":[{"index":0,"delta":{"content":"${'\\"'.repeat(480_000)}"}}]}\n\n`)
    }
    response.end('data: [DONE]\n\n')
  } else json(chat('"b"'))
}

function mcp(method: string | undefined, body: Buffer, response: ServerResponse): void {
  if (method !== 'POST') {
    response.writeHead(405).end()
    return
  }
  const message: unknown = JSON.parse(body.toString())
  const id = typeof message === 'object' && message !== null && 'id' in message ? message.id : undefined
  const called = typeof message === 'object' && message !== null && 'method' in message ? message.method : ''
  if (id === undefined) {
    response.writeHead(202).end()
    return
  }
  const result =
    called === 'initialize'
      ? {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 's', version: '1' },
        }
      : { content: [] }
  response
    .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's' })
    .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
}

/** 2 MiB of YAML. */
function openApi(): string {
  const operation = (index: number) =>
    `  /p${index}:\n    get:\n      operationId: o${index}\n      parameters:\n        - {name: q, in: query, schema: {type: string, enum: [a, b, c]}}\n      responses: {'200': {description: ok}}\n      x: [${'1, '.repeat(250)}1]\n`
  return `openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths:\n${Array.from({ length: 1_900 }, (_, index) => operation(index)).join('')}`
}
