import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type ApiKind, gatewayApiGroup, ownGroup, readKinds } from '../../src/kubernetes/objects/kinds.ts'
import { createAuthority } from './certificates.ts'
import { endAfter, type Lifetime } from './cleanup.ts'
import { applyFields, isPlain, isUnchanged, type Meta, type Stored, selects } from './kubernetes-objects.ts'

/** Identity of a bearer token for TokenReviews. */
export type TokenIdentity = { username: string; uid?: string; audiences?: string[]; groups?: string[] }

/** Response that replaces the one of the double; `reset` closes the connection, `silence` sends nothing. */
export type FaultReply =
  | { status: number; headers?: Record<string, string>; body?: unknown }
  | 'reset'
  | 'silence'
  | undefined

export type Received = { method: string; path: string; query: URLSearchParams; user: string; body: unknown }

/**
 * A double of the Kubernetes API server on https: objects with versions, lists in pages, watches with
 * bookmarks and 410, server-side apply, status subresources, TokenReview. Nothing is validated.
 */
export type KubernetesApi = {
  readonly url: string
  readonly port: number
  /** Certificate of its authority, PEM. */
  readonly authority: string
  /** Text of a kubeconfig with a token of `cluster-admin`. */
  kubeconfig(token?: string): string
  /** Creates or replaces an object as a user does: `status` is kept unless given. */
  put(object: object): Stored
  get(kind: string, namespace: string | undefined, name: string): Stored | undefined
  list(kind: string): Stored[]
  delete(kind: string, namespace: string | undefined, name: string): void
  /** Changes the status of an object as another controller does. */
  setStatus(kind: string, namespace: string | undefined, name: string, status: unknown): void
  /** Accepts a bearer token, for calls and in TokenReviews. */
  addToken(token: string, identity: TokenIdentity): void
  /** Adds or removes a kind, as an installation of a CRD does. */
  addKind(name: string, kind: ApiKind): void
  removeKind(name: string): void
  /** Replaces responses; undefined answers as usual. */
  intercept(answer: (request: Received) => FaultReply): void
  /** Sends a bookmark to all watches. */
  bookmark(): void
  /** Forgets the history: watches and continuations of earlier versions expire. */
  compact(): void
  /** Ends all open watches: without a word, or with an ERROR event of code 410. */
  endWatches(how: 'close' | 'reset' | 'expire'): void
  /** Writes raw text to all watches of a kind. */
  writeToWatches(kind: string, text: string): void
  /** Closes the port and all connections; the objects remain. */
  stop(): Promise<void>
  start(): Promise<void>
  readonly requests: readonly Received[]
  readonly openWatches: number
}

/** Kinds besides those that translations read. */
const otherKinds: Record<string, ApiKind> = {
  Lease: { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', isNamespaced: true },
  Event: { group: 'events.k8s.io', version: 'v1', plural: 'events', isNamespaced: true },
  ServiceAccount: { group: '', version: 'v1', plural: 'serviceaccounts', isNamespaced: true },
  Deployment: { group: 'apps', version: 'v1', plural: 'deployments', isNamespaced: true },
  HorizontalPodAutoscaler: {
    group: 'autoscaling',
    version: 'v2',
    plural: 'horizontalpodautoscalers',
    isNamespaced: true,
  },
  PodDisruptionBudget: { group: 'policy', version: 'v1', plural: 'poddisruptionbudgets', isNamespaced: true },
}

/** Kinds whose PUT and PATCH change the status too. */
const withoutStatusSubresource = new Set([
  'Lease',
  'Event',
  'Secret',
  'ConfigMap',
  'ServiceAccount',
  'EndpointSlice',
])

type Answer = { status: number; body: unknown }
type Watch = { kind: string; matches: (object: Stored) => boolean; response: ServerResponse }
type HistoryEntry = { version: number; kind: string; type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: Stored }
type Target = {
  kind: string
  namespace: string | undefined
  name: string | undefined
  subresource: string | undefined
}

export class Refusal extends Error {
  readonly status: number
  readonly reason: string
  readonly headers: Record<string, string>
  constructor(status: number, reason: string, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.status = status
    this.reason = reason
    this.headers = headers
  }
}

const adminToken = 'admin-token'
const maxHistory = 100_000

export async function startKubernetesApi(lifetime: Lifetime = 'test'): Promise<KubernetesApi> {
  const authority = createAuthority('kube-ca')
  const certificate = authority.issue('127.0.0.1', 'localhost')
  const kinds = new Map<string, ApiKind>(Object.entries({ ...readKinds, ...otherKinds }))
  const objects = new Map<string, Map<string, Stored>>()
  const applied = new Map<string, Record<string, unknown>>()
  const tokens = new Map<string, TokenIdentity>([
    [adminToken, { username: 'admin', groups: ['system:masters'] }],
  ])
  const history: HistoryEntry[] = []
  const continuations = new Map<string, { items: Stored[]; version: number }>()
  const watches = new Set<Watch>()
  const sockets = new Set<Socket>()
  const requests: Received[] = []
  const state = { version: 1_000, compacted: 999, created: Date.now() - 3_600_000, port: 0 }
  let answer: (request: Received) => FaultReply = () => undefined
  let server: Server | undefined

  const of = (kind: string) => {
    const known = objects.get(kind)
    if (known !== undefined) return known
    const created = new Map<string, Stored>()
    objects.set(kind, created)
    return created
  }
  const keyOf = ({ namespace, name }: Pick<Meta, 'namespace' | 'name'>) => `${namespace ?? ''}/${name}`

  function record(kind: string, type: HistoryEntry['type'], object: Stored): void {
    history.push({ version: state.version, kind, type, object })
    if (history.length > maxHistory) state.compacted = history.shift()?.version ?? state.compacted
    for (const watch of watches)
      if (watch.kind === kind && watch.matches(object)) writeEvent(watch.response, type, object)
  }

  function store(kind: string, next: Stored, before: Stored | undefined): Stored {
    if (before !== undefined && isUnchanged(before, next)) return before
    state.version += 1
    const isSpecChanged =
      before === undefined || JSON.stringify(before['spec']) !== JSON.stringify(next['spec'])
    const generation = before?.metadata.generation ?? 0
    const metadata: Meta = {
      ...next.metadata,
      uid: before?.metadata.uid ?? randomUUID(),
      creationTimestamp:
        before?.metadata.creationTimestamp ?? next.metadata.creationTimestamp ?? nextCreationTime(),
      resourceVersion: String(state.version),
      generation: isSpecChanged ? generation + 1 : generation,
      managedFields: [{ manager: 'double', operation: 'Update' }],
    }
    const stored: Stored = JSON.parse(JSON.stringify({ ...next, metadata }))
    of(kind).set(keyOf(metadata), stored)
    record(kind, before === undefined ? 'ADDED' : 'MODIFIED', stored)
    return stored
  }

  function nextCreationTime(): string {
    state.created += 1_000
    return `${new Date(state.created).toISOString().slice(0, 19)}Z`
  }

  function remove(kind: string, stored: Stored): void {
    of(kind).delete(keyOf(stored.metadata))
    state.version += 1
    const resourceVersion = String(state.version)
    record(kind, 'DELETED', { ...stored, metadata: { ...stored.metadata, resourceVersion } })
    // The garbage collector of the controller manager.
    for (const [dependentKind, dependents] of objects)
      for (const dependent of [...dependents.values()])
        if (dependent.metadata.ownerReferences?.some(({ uid }) => uid === stored.metadata.uid))
          remove(dependentKind, dependent)
  }

  function targetOf(path: string): Target {
    const match =
      /^\/(?:api\/(v1)|apis\/([^/]+)\/([^/]+))(?:\/namespaces\/([^/]+)(?=\/[^/]))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
        path,
      )
    const [, core, group = '', version = core, namespace, plural, name, subresource] = match ?? []
    for (const [kind, known] of kinds)
      if (known.group === group && known.version === version && known.plural === plural)
        return { kind, namespace, name, subresource }
    throw new Refusal(404, 'NotFound', 'the server could not find the requested resource')
  }

  function list(target: Target, query: URLSearchParams): unknown {
    const kind = kinds.get(target.kind)
    const apiVersion = kind?.group === '' ? 'v1' : `${kind?.group}/${kind?.version}`
    const token = query.get('continue')
    const started = token === null ? undefined : continuations.get(token)
    if (token !== null && started === undefined)
      throw new Refusal(410, 'Expired', 'The provided continue parameter is too old')
    const { items, version } = started ?? {
      items: [...of(target.kind).values()].filter(matcher(target, query)),
      version: state.version,
    }
    const limit = Number(query.get('limit') ?? 0) || items.length
    const rest = items.slice(limit)
    const next = rest.length > 0 ? randomUUID() : undefined
    if (next !== undefined) continuations.set(next, { items: rest, version })
    // Items of built-in kinds have neither field.
    const isCustom = kind !== undefined && [gatewayApiGroup, ownGroup].includes(kind.group)
    const page = items.slice(0, limit).map(({ apiVersion, kind, ...item }) => ({
      ...(isCustom && { apiVersion, kind }),
      ...item,
    }))
    const metadata = { resourceVersion: String(version), ...(next !== undefined && { continue: next }) }
    return { apiVersion, kind: `${target.kind}List`, metadata, items: page }
  }

  function watch(target: Target, query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion') ?? 0)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (from < state.compacted) {
      writeEvent(response, 'ERROR', expiredStatus(from))
      response.end()
      return
    }
    const matches = matcher(target, query)
    for (const { version, kind, type, object } of history)
      if (version > from && kind === target.kind && matches(object)) writeEvent(response, type, object)
    const entry: Watch = { kind: target.kind, matches, response }
    watches.add(entry)
    const end = () => {
      watches.delete(entry)
      response.end()
    }
    const timer = setTimeout(end, Number(query.get('timeoutSeconds') ?? 300) * 1_000)
    response.on('close', () => {
      clearTimeout(timer)
      watches.delete(entry)
    })
  }

  function write(
    { kind, namespace, name = '', subresource }: Target,
    { method, body, query }: Received,
  ): Stored {
    const stored = find(kind, namespace, name)
    const given = asStored(body, namespace)
    if (method === 'PATCH') return patch(kind, given, stored, query.get('fieldManager') ?? '')
    if (stored === undefined) throw notFound(kind, name)
    const version = given.metadata.resourceVersion
    if (version !== undefined && version !== stored.metadata.resourceVersion)
      throw new Refusal(
        409,
        'Conflict',
        `Operation cannot be fulfilled on ${kind} "${name}": the object has been modified`,
      )
    return store(kind, withSubresource(kind, given, stored, subresource), stored)
  }

  function patch(kind: string, given: Stored, stored: Stored | undefined, manager: string): Stored {
    const id = `${manager}|${kind}|${keyOf(given.metadata)}`
    const before = applied.get(id) ?? {}
    const merged = applyFields(stored ?? {}, before, given)
    applied.set(id, given)
    return store(kind, asStored(merged, given.metadata.namespace), stored)
  }

  function create({ kind, namespace }: Target, body: unknown): unknown {
    const given = asStored(body, namespace)
    const existing = of(kind).get(keyOf(given.metadata))
    if (existing !== undefined)
      throw new Refusal(409, 'AlreadyExists', `${kind} "${given.metadata.name}" already exists`)
    return store(kind, given, undefined)
  }

  function review(body: unknown): unknown {
    const spec = isPlain(body) && isPlain(body['spec']) ? body['spec'] : {}
    const identity = tokens.get(String(spec['token']))
    const asked = Array.isArray(spec['audiences']) ? spec['audiences'].map(String) : []
    const audiences = asked.filter((one) => identity?.audiences?.includes(one))
    if (identity === undefined || (asked.length > 0 && audiences.length === 0))
      return { ...Object(body), status: { error: 'invalid bearer token' } }
    const { username, uid = '', groups = [] } = identity
    return { ...Object(body), status: { authenticated: true, user: { username, uid, groups }, audiences } }
  }

  /** Undefined for a watch, which writes its response itself. */
  function answerTo(request: Received, response: ServerResponse): Answer | undefined {
    if (request.path === '/version') return { status: 200, body: { gitVersion: 'v1.36.0' } }
    if (request.path === '/apis/authentication.k8s.io/v1/tokenreviews')
      return { status: 201, body: review(request.body) }
    const target = targetOf(request.path)
    const { method, query } = request
    if (method === 'GET' && target.name === undefined) {
      if (query.get('watch') !== 'true') return { status: 200, body: list(target, query) }
      watch(target, query, response)
      return undefined
    }
    if (method === 'POST') return { status: 201, body: create(target, request.body) }
    if (method === 'PUT' || method === 'PATCH') return { status: 200, body: write(target, request) }
    const { kind, namespace, name = '' } = target
    const stored = find(kind, namespace, name)
    if (stored === undefined) throw notFound(kind, name)
    if (method === 'GET') return { status: 200, body: stored }
    const conditions = isPlain(request.body) ? request.body['preconditions'] : undefined
    if (isPlain(conditions) && conditions['uid'] !== stored.metadata.uid)
      throw new Refusal(409, 'Conflict', 'Precondition failed: UID in precondition differs')
    remove(kind, stored)
    return { status: 200, body: { kind: 'Status', status: 'Success' } }
  }

  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(message.url ?? '/', 'https://api')
    const token = message.headers.authorization?.replace(/^Bearer /, '') ?? ''
    const user = tokens.get(token)?.username ?? ''
    const text = await textOf(message)
    const body: unknown = text === '' ? undefined : JSON.parse(text)
    const request = {
      method: message.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      user,
      body,
    }
    requests.push(request)
    const fault = answer(request)
    if (fault === 'silence') return
    if (fault === 'reset') {
      message.socket.destroy()
      return
    }
    if (fault !== undefined) {
      sendFault(response, fault)
      return
    }
    try {
      if (user === '') throw new Refusal(401, 'Unauthorized', 'Unauthorized')
      const result = answerTo(request, response)
      if (result !== undefined) send(response, result.status, result.body)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const status = {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        code: error.status,
        reason: error.reason,
        message: error.message,
      }
      send(response, error.status, status, error.headers)
    }
  }

  async function start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    server = createServer({ cert: certificate.cert, key: certificate.key }, (message, response) => {
      handle(message, response).catch((error: unknown) =>
        response.destroy(error instanceof Error ? error : undefined),
      )
    })
    server.on('connection', (socket: Socket) => {
      sockets.add(socket)
      socket.on('close', () => sockets.delete(socket))
    })
    server.once('error', reject)
    server.listen(state.port, '127.0.0.1', resolve)
    await promise
    const address = server.address() as AddressInfo
    state.port = address.port
  }

  async function stop(): Promise<void> {
    const closing = server
    server = undefined
    if (closing === undefined) return
    const closed = new Promise((resolve) => closing.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }

  function find(kind: string, namespace: string | undefined, name: string): Stored | undefined {
    return of(kind).get(keyOf({ ...(namespace !== undefined && { namespace }), name }))
  }

  await start()
  endAfter(lifetime, stop)
  return {
    url: `https://127.0.0.1:${state.port}`,
    port: state.port,
    authority: authority.cert,
    kubeconfig: (token = adminToken) =>
      kubeconfigText(`https://127.0.0.1:${state.port}`, authority.cert, token),
    put(object) {
      const given = asStored(object, undefined)
      const stored = of(given.kind).get(keyOf(given.metadata))
      return store(
        given.kind,
        stored === undefined ? given : withSubresource(given.kind, { ...stored, ...given }, stored, 'both'),
        stored,
      )
    },
    get: find,
    list: (kind) => [...of(kind).values()],
    delete(kind, namespace, name) {
      const stored = find(kind, namespace, name)
      if (stored !== undefined) remove(kind, stored)
    },
    setStatus(kind, namespace, name, status) {
      const stored = find(kind, namespace, name)
      if (stored !== undefined) store(kind, { ...stored, status }, stored)
    },
    addToken: (token, identity) => void tokens.set(token, identity),
    addKind: (name, kind) => void kinds.set(name, kind),
    removeKind: (name) => void kinds.delete(name),
    intercept(next) {
      answer = next
    },
    bookmark() {
      for (const { kind, response } of watches) {
        const metadata = { resourceVersion: String(state.version) }
        writeEvent(response, 'BOOKMARK', { kind, metadata })
      }
    },
    compact() {
      state.version += 1
      state.compacted = state.version
      history.length = 0
      continuations.clear()
    },
    endWatches(how) {
      for (const watch of [...watches]) {
        const { response } = watch
        watches.delete(watch)
        if (how === 'expire') writeEvent(response, 'ERROR', expiredStatus(0))
        if (how === 'reset') response.destroy()
        else response.end()
      }
    },
    writeToWatches(kind, text) {
      for (const watch of watches) if (watch.kind === kind) watch.response.write(text)
    },
    stop,
    start,
    requests,
    get openWatches() {
      return watches.size
    },
  }
}

function matcher({ namespace }: Target, query: URLSearchParams): (object: Stored) => boolean {
  return (object) => {
    const { metadata } = object
    if (namespace !== undefined && metadata.namespace !== namespace) return false
    const field = (name: string) => {
      if (name === 'metadata.name') return metadata.name
      if (name === 'metadata.namespace') return metadata.namespace
      return typeof object[name] === 'string' ? object[name] : ''
    }
    return (
      selects(query.get('labelSelector'), (name) => metadata.labels?.[name]) &&
      selects(query.get('fieldSelector'), field)
    )
  }
}

/** A write to an object changes everything but the status, a write to its status nothing else. */
function withSubresource(
  kind: string,
  given: Stored,
  stored: Stored,
  subresource: string | undefined,
): Stored {
  if (subresource === 'status') return { ...stored, status: given['status'] }
  if (subresource === 'both' || withoutStatusSubresource.has(kind)) return given
  const { status: _, ...rest } = given
  return {
    ...rest,
    apiVersion: given.apiVersion,
    kind,
    metadata: given.metadata,
    ...('status' in stored && { status: stored['status'] }),
  }
}

function asStored(value: unknown, namespace: string | undefined): Stored {
  if (!isPlain(value) || !isPlain(value['metadata'])) throw new Refusal(400, 'BadRequest', 'not an object')
  const { metadata, apiVersion, kind } = value
  const name =
    metadata['name'] ??
    (typeof metadata['generateName'] === 'string'
      ? `${metadata['generateName']}${randomUUID().slice(0, 8)}`
      : undefined)
  if (typeof name !== 'string') throw new Refusal(422, 'Invalid', 'metadata.name: Required value')
  return {
    ...value,
    apiVersion: String(apiVersion),
    kind: String(kind),
    metadata: { ...metadata, name, ...(namespace !== undefined && { namespace }) },
  }
}

function notFound(kind: string, name: string): Refusal {
  return new Refusal(404, 'NotFound', `${kind} "${name}" not found`)
}

function expiredStatus(from: number): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `too old resource version: ${from}`,
    reason: 'Expired',
    code: 410,
  }
}

function writeEvent(response: ServerResponse, type: string, object: object): void {
  response.write(`${JSON.stringify({ type, object })}\n`)
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

function sendFault(
  response: ServerResponse,
  { status, headers = {}, body }: Exclude<FaultReply, 'reset' | 'silence' | undefined>,
): void {
  const text =
    typeof body === 'string'
      ? body
      : JSON.stringify(body ?? { kind: 'Status', code: status, reason: 'Fault', message: 'fault' })
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(text)
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function kubeconfigText(server: string, authority: string, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [
      {
        name: 'test',
        cluster: { server, 'certificate-authority-data': Buffer.from(authority).toString('base64') },
      },
    ],
    users: [{ name: 'test', user: { token } }],
  })
}
