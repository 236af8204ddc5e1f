import { isSource } from '../../../net/http/body.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { AttemptOptions } from '../attempt/attempt.ts'
import { serveCall } from '../attempt/serve-call.ts'
import type { Candidate } from '../models/candidate.ts'
import { readUnambiguous } from '../reply/object-reply.ts'
import type { Call } from '../request/call.ts'
import { isBackground } from '../request/output-limit.ts'
import type { ResponseCache } from './cache.ts'
import { readCacheControl } from './cache-control.ts'
import type { SharedResponses } from './database/shared-responses.ts'
import { type CacheKeys, cacheKeys } from './key.ts'
import { recordingStream, storeObject } from './recording.ts'
import type { StoredResponse } from './store.ts'

/** The lookup of a call: its target with the cache, and the keys of its response. */
export type Lookup = {
  readonly exchange: Exchange
  readonly call: Call
  readonly candidate: Candidate
  readonly cache: ResponseCache
  readonly keys: CacheKeys
}

/**
 * Serves a call from the cache of its first candidate, or by its candidates. Checks of the request precede
 * the lookup, and guards check the stored response as one of the provider: their configuration and the client
 * may have changed since.
 */
export function serveCached(exchange: Exchange, call: Call, options: AttemptOptions): Reply | Promise<Reply> {
  const [candidate] = call.candidates
  const cache = candidate?.target.cache
  if (candidate === undefined || cache === undefined || !isCacheable(exchange, call))
    return serveCall(exchange, call, options)
  const { noStore, maxAgeSeconds } = readCacheControl(exchange.facts.request.headers)
  const keys = noStore ? undefined : cacheKeys(exchange, call, candidate, cache)
  if (keys === undefined) return serveCall(exchange, call, options)
  return serveByKey({ exchange, call, candidate, cache, keys }, maxAgeSeconds, options)
}

/** Calls whose responses are functions of the request. */
const cachedEndpoints: ReadonlySet<string> = new Set([
  ...['chat', 'cohere_chat', 'completions', 'embeddings', 'messages', 'responses'],
])

/** Responses in the background are incomplete, and conversations of the provider change with each request. */
function isCacheable({ facts: { llmRequest = {} } }: Exchange, { endpoint, unchanged }: Call): boolean {
  if (unchanged || endpoint === 'passthrough' || !cachedEndpoints.has(endpoint)) return false
  return !isBackground(endpoint, llmRequest) && llmRequest['conversation'] == null
}

function serveByKey(lookup: Lookup, maxAgeSeconds: number, options: AttemptOptions): Reply | Promise<Reply> {
  const { cache, keys } = lookup
  const stored = cache.store.get(keys.exact) ?? findCanonical(lookup)
  const ageMs = stored === undefined ? 0 : options.context.clock.monotonic() - stored.storedAt
  if (stored !== undefined && ageMs >= cache.ttlMs) cache.store.delete(keys.exact)
  else if (stored !== undefined && ageMs < maxAgeSeconds * 1000) return serveHit(lookup, stored, options)
  // Another process may have stored a younger response.
  if (cache.shared !== undefined && maxAgeSeconds > 0)
    return serveShared(lookup, cache.shared, { ...options, maxAgeSeconds })
  return serveMiss(lookup, options)
}

/** Serves the response of the database, which is then in memory as well. */
async function serveShared(
  lookup: Lookup,
  shared: SharedResponses,
  { maxAgeSeconds, ...options }: AttemptOptions & { maxAgeSeconds: number },
): Promise<Reply> {
  const { cache, keys } = lookup
  const key = keys.canonical()
  const stored = await shared.read(key, cache.scope)
  const maxAgeMs = Math.min(cache.ttlMs, maxAgeSeconds * 1000)
  if (stored === undefined || options.context.clock.monotonic() - stored.storedAt >= maxAgeMs)
    return serveMiss(lookup, options)
  cache.store.set(key, stored)
  cache.store.link(keys.exact, key)
  return serveHit(lookup, stored, options)
}

function serveHit(lookup: Lookup, stored: StoredResponse, options: AttemptOptions): Reply | Promise<Reply> {
  const ageMs = options.context.clock.monotonic() - stored.storedAt
  const ageSeconds = Math.floor(ageMs / 1000)
  return readForGuards(lookup, stored)
    ? replayChecked(lookup, stored, { ...options, ageSeconds })
    : replay(lookup, stored, ageSeconds)
}

function findCanonical({ cache: { store }, keys }: Lookup): StoredResponse | undefined {
  const key = keys.canonical()
  const stored = store.get(key)
  if (stored) store.link(keys.exact, key)
  return stored
}

async function serveMiss(lookup: Lookup, options: AttemptOptions): Promise<Reply> {
  count(lookup, 'miss')
  // The body is released before the response.
  const key = lookup.keys.canonical()
  const reply = await serveCall(lookup.exchange, lookup.call, options)
  reply.headers['x-cache'] = 'miss'
  return store(lookup, reply, { key, context: options.context })
}

function count({ exchange: { facts }, cache }: Lookup, result: 'hit' | 'miss'): void {
  cache.meter.counted(result)
  if (facts.llm) facts.llm.cache = result
}

/** Whether policies read the content of the stored object. */
function readForGuards({ exchange }: Lookup, { contentType }: StoredResponse): boolean {
  return exchange.llm?.message?.readsAnswer === true && !isEventStream({ 'content-type': contentType })
}

/** The reply of a hit with the object for guards, unless they refuse to read it. */
async function replayChecked(
  lookup: Lookup,
  stored: StoredResponse,
  options: AttemptOptions & { ageSeconds: number },
): Promise<Reply> {
  const message = lookup.exchange.llm?.message
  const json = await readUnambiguous(stored.body, lookup.call.endpoint, options.context.workQueue)
  if (message === undefined || json.kind !== 'object') return serveMiss(lookup, options)
  message.answer = { kind: 'whole', json }
  return replay(lookup, stored, options.ageSeconds)
}

function replay(lookup: Lookup, { body, contentType, model }: StoredResponse, ageSeconds: number): Reply {
  const { exchange, candidate } = lookup
  const { target } = candidate
  const headers: Reply['headers'] = { 'content-type': contentType, age: String(ageSeconds), 'x-cache': 'hit' }
  if (isEventStream(headers)) {
    headers['cache-control'] = 'no-cache'
    headers['x-accel-buffering'] = 'no'
    if (exchange.llm?.message) exchange.llm.message.answer = { kind: 'stream' }
  }
  count(lookup, 'hit')
  const { llm } = exchange.facts
  if (llm) {
    llm.configuredModel = target.configuredModel
    llm.provider = target.provider.name
    llm.responseModel = model
  }
  target.editReplyHeaders?.(headers)
  return { status: 200, headers, body }
}

/** Stores a complete response of the first candidate: those of others belong to a failure. */
async function store(
  lookup: Lookup,
  reply: Reply,
  { key, context }: { key: string; context: CompileContext },
): Promise<Reply> {
  const { call, candidate, cache } = lookup
  const { attempt } = call
  const contentType = firstHeader(reply.headers, 'content-type')
  if (reply.status !== 200 || contentType === undefined) return reply
  if (attempt?.candidate !== candidate || !attempt.succeeded) return reply
  const { body } = reply
  const save = (bytes: Buffer) => {
    const response = {
      contentType,
      body: bytes,
      model: attempt.responseModel,
      storedAt: context.clock.monotonic(),
    }
    cache.store.set(key, response)
    cache.store.link(lookup.keys.exact, key)
    cache.shared?.write(key, response, { ...cache.scope, ttlMs: cache.ttlMs })
  }
  if (isSource(body)) return { ...reply, body: recordingStream(body, lookup, save) }
  if (body !== undefined) await storeObject(body, lookup, { save, workQueue: context.workQueue })
  return reply
}
