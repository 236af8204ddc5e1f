import { readEvents } from '../../../../api/events.ts'
import { type RpcMessage, readMessages } from './json-rpc.ts'

/** Sends one HTTP request to the endpoint, with headers for the gateway. */
export type SendHttp = (request: {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal: AbortSignal
}) => Promise<Response>

export type TransportEvents = {
  /** Text of each message, as it was sent or received. */
  onRaw(direction: 'sent' | 'received', value: unknown): void
  onMessage(message: RpcMessage): void
}

/** Refusal of the endpoint with an HTTP status. */
export class HttpRefusal extends Error {
  readonly status: number
  /** Value of `www-authenticate`. */
  readonly challenge: string | undefined

  constructor(status: number, message: string, challenge?: string) {
    super(message)
    this.name = 'HttpRefusal'
    this.status = status
    this.challenge = challenge
  }
}

export type Transport = {
  /** Sends a message; resolves after the messages of its reply. A stream that ends before `isDone` is resumed. */
  post(message: object, options?: { readonly signal?: AbortSignal; isDone?(): boolean }): Promise<void>
  /** Receives messages outside of requests until `close`; returns at once if the server has no such stream. */
  listen(): Promise<void>
  /** Revision that the server chose, for later requests. */
  setRevision(revision: string): void
  /** Ends the session. */
  close(): Promise<void>
}

const maxReconnects = 5
const reconnectMs = 1_000

/** Streamable HTTP of MCP, client side: a session over POST, GET and DELETE. */
export function createTransport(send: SendHttp, events: TransportEvents): Transport {
  const ended = new AbortController()
  let session: string | undefined
  let revision: string | undefined

  const headers = (extra: Readonly<Record<string, string>> = {}) => ({
    ...(session !== undefined && { 'mcp-session-id': session }),
    ...(revision !== undefined && { 'mcp-protocol-version': revision }),
    ...extra,
  })

  const receive = (value: unknown) => {
    events.onRaw('received', value)
    for (const message of readMessages(value)) events.onMessage(message)
  }

  /** Reads an event stream; returns the id of its last event. */
  const readStream = async (response: Response): Promise<string | undefined> => {
    let lastId: string | undefined
    for await (const { data, id } of readEvents(response)) {
      if (id !== undefined) lastId = id
      if (data !== '') receive(JSON.parse(data))
    }
    return lastId
  }

  const open = async (lastId: string | undefined): Promise<Response> => {
    const resumed = lastId === undefined ? {} : { 'last-event-id': lastId }
    return await send({ method: 'GET', headers: headers(resumed), signal: ended.signal })
  }

  /** Continues streams that the server closes, which it may do at any time. */
  const follow = async (response: Response, isDone: () => boolean): Promise<void> => {
    let lastId = await readStream(response)
    for (let attempt = 0; !isDone() && lastId !== undefined && attempt < maxReconnects; attempt += 1) {
      await pause(reconnectMs)
      if (ended.signal.aborted) return
      const next = await open(lastId)
      if (!next.ok) return
      lastId = (await readStream(next)) ?? lastId
    }
  }

  return {
    async post(message, { signal, isDone = () => true } = {}) {
      events.onRaw('sent', message)
      const response = await send({
        method: 'POST',
        headers: headers(),
        body: message,
        signal: signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]),
      })
      const given = response.headers.get('mcp-session-id')
      if (given !== null) session = given
      if (!response.ok) throw await refusalOf(response, receive)
      const type = response.headers.get('content-type') ?? ''
      if (type.startsWith('text/event-stream')) await follow(response, isDone)
      else if (type.startsWith('application/json')) receive(await response.json())
      else await response.body?.cancel()
    },
    async listen() {
      for (let attempt = 0; attempt < maxReconnects && !ended.signal.aborted; attempt += 1) {
        const response = await open(undefined)
        if (!response.ok) return void response.body?.cancel()
        await readStream(response)
        await pause(reconnectMs)
      }
    },
    setRevision(chosen) {
      revision = chosen
    },
    async close() {
      if (ended.signal.aborted) return
      ended.abort()
      if (session === undefined) return
      const timeout = AbortSignal.timeout(5_000)
      const response = await send({ method: 'DELETE', headers: headers(), signal: timeout })
      await response.body?.cancel()
    },
  }
}

async function refusalOf(response: Response, receive: (value: unknown) => void): Promise<HttpRefusal> {
  const text = await response.text().catch(() => '')
  const challenge = response.headers.get('x-forward-www-authenticate') ?? undefined
  const value = parsed(text)
  const [message] = readMessages(value)
  if (message?.kind === 'error') {
    receive(value)
    return new HttpRefusal(response.status, message.error.message, challenge)
  }
  const shown = typeof value === 'string' ? value : text
  return new HttpRefusal(
    response.status,
    shown.slice(0, 500) || `The endpoint answered with status ${response.status}.`,
    challenge,
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
