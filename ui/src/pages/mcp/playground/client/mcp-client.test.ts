import { describe, expect, it } from 'vitest'
import type { RpcNotification, RpcRequest } from './json-rpc.ts'
import { connectMcp, type Members } from './mcp-client.ts'
import { HttpRefusal, type SendHttp } from './transport.ts'

type Sent = { method: string; headers: Readonly<Record<string, string>>; body: Record<string, unknown> }
type Reply = Response | ((sent: Sent) => Response)

function json(value: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(value), { headers: { 'content-type': 'application/json', ...headers } })
}

function events(messages: readonly unknown[], id?: string): Response {
  const text = messages
    .map((message) => `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`)
    .join('')
  return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
}

/** An endpoint that answers `initialize`, and other methods by `replies`. */
function endpoint(replies: Record<string, Reply> = {}) {
  const sent: Sent[] = []
  const send: SendHttp = async ({ method, headers, body }) => {
    const message = (body ?? {}) as Record<string, unknown>
    const request = { method, headers, body: message }
    sent.push(request)
    const name =
      typeof message['method'] === 'string' ? message['method'] : method === 'GET' ? 'stream' : method
    const reply = replies[name]
    if (reply !== undefined) return typeof reply === 'function' ? reply(request) : reply
    if (name === 'initialize')
      return json(
        {
          ...{ jsonrpc: '2.0', id: message['id'] },
          result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'test' } },
        },
        { 'mcp-session-id': 's1' },
      )
    return new Response(undefined, { status: method === 'GET' ? 405 : 202 })
  }
  const notifications: RpcNotification[] = []
  const connect = (onRequest: (request: RpcRequest) => Promise<Members> = async () => ({})) =>
    connectMcp(
      send,
      { onRaw() {}, onNotification: (one) => void notifications.push(one), onRequest, onEnd() {} },
      new AbortController().signal,
    )
  return { sent, connect, notifications }
}

const idOf = ({ body }: Sent) => body['id']

describe('a session', () => {
  it('sends its id and revision with each later request, and ends with DELETE', async () => {
    const { sent, connect } = endpoint()
    const client = await connect()
    expect(client.server).toMatchObject({ protocolVersion: '2025-06-18', serverInfo: { name: 'test' } })
    await client.close()
    const headers = { 'mcp-session-id': 's1', 'mcp-protocol-version': '2025-06-18' }
    expect(sent[0]?.headers).toEqual({})
    expect(sent.at(-1)).toMatchObject({ method: 'DELETE', headers })
  })

  it('reports the refusal of the endpoint', async () => {
    const { connect } = endpoint({
      initialize: new Response('no token', {
        status: 401,
        headers: { 'x-forward-www-authenticate': 'Bearer resource_metadata="x"' },
      }),
    })
    const error = await connect().catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(HttpRefusal)
    expect(error).toMatchObject({
      status: 401,
      message: 'no token',
      challenge: expect.stringContaining('Bearer'),
    })
  })

  it('reads all pages of a list', async () => {
    const { connect } = endpoint({
      'tools/list': (sent) => {
        const { cursor } = sent.body['params'] as { cursor?: string }
        const result = cursor ? { tools: [{ name: 'b' }] } : { tools: [{ name: 'a' }], nextCursor: '2' }
        return json({ jsonrpc: '2.0', id: idOf(sent), result })
      },
    })
    const client = await connect()
    expect(await client.list('tools/list', 'tools')).toEqual([{ name: 'a' }, { name: 'b' }])
  })
})

describe('a call', () => {
  it('reports progress, and answers requests of the server', async () => {
    const { sent, connect } = endpoint({
      'tools/call': (request) =>
        events([
          {
            ...{ jsonrpc: '2.0', method: 'notifications/progress' },
            params: { progressToken: idOf(request), progress: 1, total: 2 },
          },
          { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'sure?' } },
          { jsonrpc: '2.0', id: idOf(request), result: { content: [] } },
        ]),
    })
    const client = await connect(async ({ params }) => ({ action: 'accept', seen: params['message'] }))
    const progress: unknown[] = []
    const result = await client.request('tools/call', {}, { onProgress: (one) => progress.push(one) })
    expect(result).toEqual({ content: [] })
    expect(progress).toEqual([{ progress: 1, total: 2 }])
    expect(sent.map(({ body }) => body)).toContainEqual(
      expect.objectContaining({ id: 'q', result: { action: 'accept', seen: 'sure?' } }),
    )
  })

  it('continues a stream that the server closes before the response', async () => {
    let id: unknown
    const { sent, connect } = endpoint({
      'tools/call': (request) => {
        id = idOf(request)
        return events([{ jsonrpc: '2.0', method: 'notifications/message', params: {} }], 'e1')
      },
      stream: (request) =>
        request.headers['last-event-id'] === 'e1'
          ? events([{ jsonrpc: '2.0', id, result: { ok: true } }])
          : new Response(undefined, { status: 405 }),
    })
    const client = await connect()
    expect(await client.request('tools/call')).toEqual({ ok: true })
    expect(sent.filter(({ headers }) => headers['last-event-id'] === 'e1')).toHaveLength(1)
  })

  it('fails with the error of the server, and without a response', async () => {
    const { connect } = endpoint({
      'tools/call': (request) =>
        json({ jsonrpc: '2.0', id: idOf(request), error: { code: -32602, message: 'unknown tool' } }),
      'prompts/get': () => events([]),
    })
    const client = await connect()
    await expect(client.request('tools/call')).rejects.toThrow('unknown tool')
    await expect(client.request('prompts/get')).rejects.toThrow('without a response')
  })

  it('is cancelled at the server too', async () => {
    const { sent, connect } = endpoint()
    const client = await connect()
    const abort = new AbortController()
    const call = client.request('tools/call', {}, { signal: abort.signal })
    abort.abort()
    await expect(call).rejects.toThrow()
    expect(sent.map(({ body }) => body['method'])).toContain('notifications/cancelled')
  })
})
