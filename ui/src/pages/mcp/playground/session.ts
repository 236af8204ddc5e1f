import { forward } from '../../../api/forward.ts'
import { isObject } from '../../../schema-form/model/value.ts'
import { RpcError, type RpcNotification, type RpcRequest } from './client/json-rpc.ts'
import {
  connectMcp,
  type McpClient,
  type Members,
  type Progress,
  type ServerFacts,
} from './client/mcp-client.ts'
import { HttpRefusal } from './client/transport.ts'

export type Endpoint = {
  readonly gateway: string
  readonly path: string
  /** Bearer token or key; empty for none. */
  readonly credential: string
}

export type Lists = {
  readonly tools: readonly Members[]
  readonly prompts: readonly Members[]
  readonly resources: readonly Members[]
  readonly resourceTemplates: readonly Members[]
}

export type Call = {
  readonly id: number
  readonly method: string
  readonly name: string
  readonly startedAt: number
  readonly endedAt?: number
  readonly progress?: Progress
  readonly result?: Members
  readonly error?: string
}

export type LogLine = {
  readonly id: number
  readonly time: number
  readonly level: string
  readonly logger: string | undefined
  readonly text: string
}

export type RawMessage = {
  readonly id: number
  readonly time: number
  readonly direction: 'sent' | 'received'
  readonly summary: string
  readonly text: string
}

/** Request of a server that a person answers. */
export type Question = {
  readonly id: number
  readonly kind: 'elicitation' | 'sampling'
  readonly params: Members
  answer(result: Members): void
}

export type SessionState = {
  readonly status: 'idle' | 'connecting' | 'connected'
  readonly endpoint: Endpoint | undefined
  readonly failure:
    | { readonly message: string; readonly status?: number; readonly challenge?: string }
    | undefined
  readonly server: ServerFacts | undefined
  readonly lists: Lists
  readonly calls: readonly Call[]
  readonly logs: readonly LogLine[]
  readonly messages: readonly RawMessage[]
  readonly questions: readonly Question[]
}

const noLists: Lists = { tools: [], prompts: [], resources: [], resourceTemplates: [] }

const initial: SessionState = {
  ...{ status: 'idle', endpoint: undefined, failure: undefined, server: undefined },
  ...{ lists: noLists, calls: [], logs: [], messages: [], questions: [] },
}

/** Wait for further changes before lists are read again. */
const reloadMs = 500
const maxCalls = 50
const maxLogs = 500
const maxMessages = 300
const maxTextLength = 200_000

export type McpSession = ReturnType<typeof createMcpSession>

/** Creates the session of the playground. It stays open while other pages are displayed. */
export function createMcpSession({ now }: { now(): number }) {
  const { read, subscribe, update } = createState()
  const running = new Map<number, AbortController>()
  let client: McpClient | undefined
  let opening: AbortController | undefined
  let reload: ReturnType<typeof setTimeout> | undefined
  let lastId = 0
  const nextId = () => {
    lastId += 1
    return lastId
  }

  /** Methods of requests by direction and id, to name their responses. */
  const methods = new Map<string, string>()

  const onRaw = (direction: RawMessage['direction'], value: unknown) => {
    const text = JSON.stringify(value, undefined, 2).slice(0, maxTextLength)
    const message = {
      id: nextId(),
      time: now(),
      direction,
      summary: summaryOf(value, direction, methods),
      text,
    }
    update(({ messages }) => ({ messages: [...messages, message].slice(-maxMessages) }))
  }

  const onNotification = ({ method, params }: RpcNotification) => {
    if (method === 'notifications/message') {
      const line = { id: nextId(), time: now(), ...logOf(params) }
      update(({ logs }) => ({ logs: [...logs, line].slice(-maxLogs) }))
    }
    if (!method.endsWith('/list_changed')) return
    // Each server behind the endpoint reports its lists.
    clearTimeout(reload)
    reload = setTimeout(() => void loadLists(), reloadMs)
  }

  const onRequest = ({ method, params }: RpcRequest): Promise<Members> => {
    if (method === 'ping') return Promise.resolve({})
    if (method === 'roots/list') return Promise.resolve({ roots: [] })
    const kind = questionKinds.get(method)
    if (kind === undefined) throw new RpcError({ code: -32601, message: `Method not found: ${method}` })
    return new Promise((resolve) => {
      const id = nextId()
      const answer = (result: Members) => {
        update(({ questions }) => ({ questions: questions.filter((one) => one.id !== id) }))
        resolve(result)
      }
      update(({ questions }) => ({ questions: [...questions, { id, kind, params, answer }] }))
    })
  }

  const loadLists = async () => {
    const { capabilities = {} } = client?.server ?? {}
    const load = async (member: keyof Lists, method: string, capability: string) =>
      isObject(capabilities[capability]) ? await client?.list(method, member).catch(() => []) : []
    const [tools = [], prompts = [], resources = [], resourceTemplates = []] = await Promise.all([
      load('tools', 'tools/list', 'tools'),
      load('prompts', 'prompts/list', 'prompts'),
      load('resources', 'resources/list', 'resources'),
      load('resourceTemplates', 'resources/templates/list', 'resources'),
    ])
    update(() => ({ lists: { tools, prompts, resources, resourceTemplates } }))
  }

  const disconnect = () => {
    opening?.abort()
    clearTimeout(reload)
    methods.clear()
    for (const abort of running.values()) abort.abort()
    for (const question of read().questions) question.answer(cancelled(question.kind))
    void client?.close()
    client = undefined
    update(() => ({ status: 'idle', server: undefined, lists: noLists, questions: [] }))
  }

  const connect = async (endpoint: Endpoint) => {
    disconnect()
    const abort = new AbortController()
    opening = abort
    update(() => ({ ...initial, status: 'connecting', endpoint }))
    const send: Parameters<typeof connectMcp>[0] = ({ headers, ...request }) =>
      forward(endpoint.gateway, endpoint.path, {
        ...request,
        headers: { ...headers, ...credentialOf(endpoint) },
      })
    const onEnd = (message: string) => {
      disconnect()
      update(() => ({ failure: { message } }))
    }
    try {
      const opened = await connectMcp(send, { onRaw, onNotification, onRequest, onEnd }, abort.signal)
      if (abort.signal.aborted) return void opened.close()
      client = opened
      update(() => ({ status: 'connected', server: opened.server }))
      await loadLists()
    } catch (error) {
      if (!abort.signal.aborted) update(() => ({ status: 'idle', failure: failureOf(error) }))
    }
  }

  const call = async (method: string, name: string, params: Members) => {
    if (client === undefined) return
    const id = nextId()
    const abort = new AbortController()
    running.set(id, abort)
    const change = (part: Partial<Call>) =>
      update(({ calls }) => ({ calls: calls.map((one) => (one.id === id ? { ...one, ...part } : one)) }))
    update(({ calls }) => ({
      calls: [{ id, method, name, startedAt: now() }, ...calls].slice(0, maxCalls),
    }))
    try {
      const result = await client.request(method, params, {
        signal: abort.signal,
        onProgress: (progress) => change({ progress }),
      })
      change({ endedAt: now(), result })
    } catch (error) {
      change({ endedAt: now(), error: abort.signal.aborted ? 'Cancelled' : failureOf(error).message })
    } finally {
      running.delete(id)
    }
  }

  return {
    read,
    subscribe,
    connect,
    disconnect,
    call,
    cancel: (id: number) => running.get(id)?.abort(),
    setLevel: (level: string) => call('logging/setLevel', level, { level }),
    clear: () => update(() => ({ calls: [], logs: [], messages: [] })),
  }
}

const questionKinds = new Map<string, Question['kind']>([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
])

/** Answer to a question that nobody answers. */
export function cancelled(kind: Question['kind']): Members {
  if (kind === 'elicitation') return { action: 'cancel' }
  return { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: '' } }
}

function credentialOf({ credential }: Endpoint): Readonly<Record<string, string>> {
  const text = credential.trim()
  if (text === '') return {}
  return { authorization: /^\S+ \S/.test(text) ? text : `Bearer ${text}` }
}

function failureOf(error: unknown): NonNullable<SessionState['failure']> {
  const message = error instanceof Error ? error.message : String(error)
  if (!(error instanceof HttpRefusal)) return { message }
  const { status, challenge } = error
  return { message, status, ...(challenge !== undefined && { challenge }) }
}

function logOf({ level, logger, data }: Members): Pick<LogLine, 'level' | 'logger' | 'text'> {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return {
    level: typeof level === 'string' ? level : 'info',
    logger: typeof logger === 'string' ? logger : undefined,
    text: (text ?? '').slice(0, 10_000),
  }
}

/** Method of a message; of the request that a response answers. */
function summaryOf(value: unknown, direction: RawMessage['direction'], methods: Map<string, string>): string {
  if (Array.isArray(value)) return `batch of ${value.length}`
  if (!isObject(value)) return 'message'
  const { id, method, error } = value
  if (typeof method === 'string') {
    const name = method.slice(0, 200)
    if (id !== undefined) methods.set(`${direction} ${String(id)}`, name)
    return name
  }
  const asked = direction === 'sent' ? 'received' : 'sent'
  const key = `${asked} ${String(id)}`
  const name = methods.get(key) ?? String(id).slice(0, 50)
  methods.delete(key)
  return `${error === undefined ? 'response' : 'error'}: ${name}`
}

function createState() {
  let state = initial
  const listeners = new Set<() => void>()
  return {
    read: () => state,
    subscribe(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    update(change: (state: SessionState) => Partial<SessionState>) {
      state = { ...state, ...change(state) }
      for (const listener of listeners) listener()
    },
  }
}
