import { readEvents } from './events.ts'
import { forward } from './forward.ts'

export type McpTool = {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema?: Readonly<Record<string, unknown>>
}

export type McpCall = {
  /** Result of the method, or the error of the server or gateway. */
  readonly outcome: { readonly kind: 'result'; readonly result: unknown } | McpError
  readonly requestId: string | undefined
  readonly durationMs: number
}

export type McpError = { readonly kind: 'error'; readonly message: string; readonly status: number }

export type McpSession = {
  call(method: string, parameters?: object): Promise<McpCall>
  close(): Promise<void>
}

const protocolVersion = '2025-11-25'

/** Opens an MCP session at a gateway, as a client does. Throws an error with the reason of a refusal. */
export async function openMcpSession(gateway: string, key: string): Promise<McpSession> {
  let lastId = 0
  let session: Record<string, string> = {}
  const send = (body: object) =>
    forward(gateway, '/mcp', {
      method: 'POST',
      body,
      accept: 'application/json, text/event-stream',
      headers: { ...session, ...(key === '' ? {} : { authorization: `Bearer ${key}` }) },
    })
  const call = async (method: string, parameters: object = {}): Promise<McpCall> => {
    lastId += 1
    const start = performance.now()
    const response = await send({ jsonrpc: '2.0', id: lastId, method, params: parameters })
    const outcome = await outcomeOf(response, lastId)
    if (method === 'initialize' && outcome.kind === 'result')
      session = {
        'mcp-protocol-version': String(fieldsOf(outcome.result)['protocolVersion'] ?? protocolVersion),
        ...sessionHeader(response),
      }
    return {
      outcome,
      requestId: response.headers.get('x-request-id') ?? undefined,
      durationMs: performance.now() - start,
    }
  }
  const { outcome } = await call('initialize', {
    protocolVersion,
    capabilities: {},
    clientInfo: { name: 'tollgate-console', version: '1' },
  })
  if (outcome.kind === 'error') throw new Error(outcome.message)
  await (await send({ jsonrpc: '2.0', method: 'notifications/initialized' })).body?.cancel()
  return {
    call,
    async close() {
      if (session['mcp-session-id'] === undefined) return
      await forward(gateway, '/mcp', { method: 'DELETE', headers: session }).catch(() => undefined)
    },
  }
}

function sessionHeader({ headers }: Response): Record<string, string> {
  const id = headers.get('mcp-session-id')
  return id === null ? {} : { 'mcp-session-id': id }
}

/** The response to the request `id`: a JSON message, or the one in an event stream. */
async function outcomeOf(response: Response, id: number): Promise<McpCall['outcome']> {
  const { status } = response
  if (response.headers.get('content-type')?.includes('text/event-stream') === true) {
    for await (const { data } of readEvents(response)) {
      const message = parsed(data)
      if (fieldsOf(message)['id'] === id) return messageOutcome(message, status)
    }
    return { kind: 'error', status, message: 'The stream ended without a response.' }
  }
  const text = await response.text()
  return messageOutcome(parsed(text) ?? text, status)
}

function messageOutcome(message: unknown, status: number): McpCall['outcome'] {
  const { result, error } = fieldsOf(message)
  if (result !== undefined) return { kind: 'result', result }
  const reason = fieldsOf(error)['message'] ?? fieldsOf(message)['message'] ?? error ?? message
  return {
    kind: 'error',
    status,
    message:
      typeof reason === 'string' && reason !== '' ? reason : `The gateway answered with status ${status}.`,
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
