import { isObject } from '../../../../schema-form/model/value.ts'
import {
  type RequestId,
  RpcError,
  type RpcMessage,
  type RpcNotification,
  type RpcRequest,
} from './json-rpc.ts'
import { createTransport, HttpRefusal, type SendHttp } from './transport.ts'

export type Members = Readonly<Record<string, unknown>>

export type ClientEvents = {
  onRaw(direction: 'sent' | 'received', value: unknown): void
  onNotification(notification: RpcNotification): void
  /** Answers a request of the server; a thrown error becomes an error response. */
  onRequest(request: RpcRequest): Promise<Members>
  /** The session has ended without `close`. */
  onEnd(reason: string): void
}

export type ServerFacts = {
  readonly protocolVersion: string
  readonly serverInfo: Members
  readonly capabilities: Members
  readonly instructions: string | undefined
}

export type Progress = { readonly progress: number; readonly total?: number; readonly message?: string }

export type CallOptions = { readonly signal?: AbortSignal; onProgress?(progress: Progress): void }

export type McpClient = {
  readonly server: ServerFacts
  request(method: string, params?: Members, options?: CallOptions): Promise<Members>
  /** All pages of a list. */
  list(method: string, member: string): Promise<readonly Members[]>
  close(): Promise<void>
}

const latestRevision = '2025-11-25'
const maxPages = 50

/** Opens a session as a client with elicitation, sampling and roots. Throws `HttpRefusal` or `RpcError`. */
export async function connectMcp(
  send: SendHttp,
  events: ClientEvents,
  signal: AbortSignal,
): Promise<McpClient> {
  const peer = createPeer(send, events)
  const { transport, request } = peer
  try {
    const result = await request(
      'initialize',
      {
        protocolVersion: latestRevision,
        capabilities: { elicitation: { form: {} }, sampling: {}, roots: { listChanged: false } },
        clientInfo: { name: 'tollgate-console', title: 'Tollgate console', version: '1' },
      },
      { signal },
    )
    const server = serverOf(result)
    transport.setRevision(server.protocolVersion)
    await transport.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    void transport.listen().catch(() => undefined)
    return {
      server,
      request,
      list: (method, member) => listAll(request, method, member),
      close: () => transport.close().catch(() => undefined),
    }
  } catch (error) {
    void transport.close().catch(() => undefined)
    throw error
  }
}

function serverOf(result: Members): ServerFacts {
  const { protocolVersion, serverInfo, capabilities, instructions } = result
  return {
    protocolVersion: typeof protocolVersion === 'string' ? protocolVersion : latestRevision,
    serverInfo: isObject(serverInfo) ? serverInfo : {},
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}

type Request = McpClient['request']

async function listAll(request: Request, method: string, member: string): Promise<readonly Members[]> {
  const items: Members[] = []
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page += 1) {
    const result = await request(method, cursor === undefined ? {} : { cursor })
    const list = result[member]
    if (Array.isArray(list)) items.push(...list.filter(isObject))
    const next = result['nextCursor']
    if (typeof next !== 'string' || next === '' || next === cursor) break
    cursor = next
  }
  return items
}

type Waiting = {
  resolve(result: Members): void
  reject(error: Error): void
  onProgress: CallOptions['onProgress']
}

/** Requests in both directions over a transport. */
function createPeer(send: SendHttp, events: ClientEvents) {
  const waiting = new Map<RequestId, Waiting>()
  let lastId = 0
  const transport = createTransport(send, { onRaw: events.onRaw, onMessage: receive })

  function receive(message: RpcMessage): void {
    switch (message.kind) {
      case 'request':
        void answer(message)
        return
      case 'notification':
        if (message.method === 'notifications/progress') reportProgress(message)
        events.onNotification(message)
        return
      case 'result':
        waiting.get(message.id)?.resolve(message.result)
        return
      case 'error':
        if (message.id !== undefined) waiting.get(message.id)?.reject(new RpcError(message.error))
    }
  }

  function reportProgress({ params }: RpcNotification): void {
    const { progressToken, progress, total, message } = params
    if (typeof progress !== 'number') return
    waiting.get(progressToken as RequestId)?.onProgress?.({
      progress,
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message }),
    })
  }

  async function answer(request: RpcRequest): Promise<void> {
    const { id } = request
    try {
      const result = await events.onRequest(request)
      await transport.post({ jsonrpc: '2.0', id, result })
    } catch (error) {
      const code = error instanceof RpcError ? error.code : -32603
      const message = error instanceof Error ? error.message : 'failed'
      await transport.post({ jsonrpc: '2.0', id, error: { code, message } }).catch(() => undefined)
    }
  }

  const request: Request = async (method, params = {}, options = {}) => {
    lastId += 1
    const id = lastId
    const { signal, onProgress } = options
    const outcome = Promise.withResolvers<Members>()
    waiting.set(id, { resolve: outcome.resolve, reject: outcome.reject, onProgress })
    const abort = () => {
      outcome.reject(new DOMException('Cancelled', 'AbortError'))
      if (method !== 'initialize')
        void transport
          .post({
            ...{ jsonrpc: '2.0', method: 'notifications/cancelled' },
            params: { requestId: id, reason: 'cancelled by the user' },
          })
          .catch(() => undefined)
    }
    signal?.addEventListener('abort', abort, { once: true })
    const sent = { ...params, ...(onProgress && { _meta: { progressToken: id } }) }
    const isDone = () => !waiting.has(id) || signal?.aborted === true
    transport.post({ jsonrpc: '2.0', id, method, params: sent }, { ...(signal && { signal }), isDone }).then(
      () => outcome.reject(new Error('The server closed the stream without a response.')),
      (error: unknown) => {
        outcome.reject(error instanceof Error ? error : new Error(String(error)))
        if (error instanceof HttpRefusal && error.status === 404 && method !== 'initialize')
          events.onEnd('The session has ended.')
      },
    )
    try {
      return await outcome.promise
    } finally {
      signal?.removeEventListener('abort', abort)
      waiting.delete(id)
    }
  }
  return { transport, request }
}
