import { isJsonObject, type JsonObject } from '../../src/lib/json/json.ts'

/** An answer as it came over the wire. */
export type RawAnswer = {
  status: number
  headers: Headers
  text: string
  /** The JSON-RPC messages in it, whether it came as events or as JSON. */
  messages: JsonObject[]
}

export const mcpHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

export const initializeMessage: JsonObject = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {}, elicitation: {}, roots: {} },
    clientInfo: { name: 'raw', version: '1' },
  },
}

/** Posts a message, given as value or as exact text, and waits for the whole answer. */
export async function post(
  url: string,
  message: JsonObject | readonly JsonObject[] | string,
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  const body = typeof message === 'string' ? message : JSON.stringify(message)
  return read(await fetch(url, { method: 'POST', headers: { ...mcpHeaders, ...headers }, body }))
}

export async function read(response: Response): Promise<RawAnswer> {
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, messages: messagesIn(response, text) }
}

/** A session of a client that speaks bare HTTP. */
export type RawSession = {
  id: string
  initialized: RawAnswer
  headers: Record<string, string>
  send(message: JsonObject | string, headers?: Record<string, string>): Promise<RawAnswer>
  /** The result of a request, or the error it was answered with. */
  request(method: string, params?: JsonObject): Promise<JsonObject>
  end(): Promise<number>
}

/** Opens a session; fails with the answer when there is none. */
export async function openSession(url: string, headers: Record<string, string> = {}): Promise<RawSession> {
  const initialized = await post(url, initializeMessage, headers)
  const id = initialized.headers.get('mcp-session-id')
  if (id === null) throw new Error(`no session: ${initialized.status} ${initialized.text}`)
  const all = { ...headers, 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' }
  const send: RawSession['send'] = (message, more = {}) => post(url, message, { ...all, ...more })
  await send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  let lastId = 0
  return {
    id,
    initialized,
    headers: all,
    send,
    async request(method, params = {}) {
      lastId += 1
      const { messages, status, text } = await send({ jsonrpc: '2.0', id: lastId, method, params })
      const answer = messages.find((message) => message['id'] === lastId)
      const found = answer?.['result'] ?? answer?.['error']
      if (!isJsonObject(found)) throw new Error(`no answer to ${method}: ${status} ${text}`)
      return found
    },
    end: async () => (await fetch(url, { method: 'DELETE', headers: all })).status,
  }
}

function messagesIn(response: Response, text: string): JsonObject[] {
  const type = response.headers.get('content-type') ?? ''
  if (type.startsWith('text/event-stream')) {
    return text
      .split(/\r?\n\r?\n/)
      .map((event) =>
        event
          .split(/\r?\n/)
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice('data:'.length).trim())
          .join('\n'),
      )
      .filter((data) => data !== '')
      .map((data) => parsed(data))
  }
  return type.startsWith('application/json') && text !== '' ? [parsed(text)] : []
}

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new Error(`not a message: ${text}`)
  return value
}
