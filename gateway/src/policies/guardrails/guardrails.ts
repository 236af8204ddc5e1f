import { parseJsonObject } from '../../lib/json/json.ts'
import type { ThreadPool } from '../../lib/scheduling/thread-pool.ts'
import { sourceOf } from '../../net/http/body.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { terminalEvent } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { LlmMessage } from '../../pipeline/llm-message.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { compileGuards, type GuardOptions, type GuardSet } from './compile-guards.ts'
import { type GuardrailsConfig, type StreamingMode, streamingModes } from './config.ts'
import { contentReaders } from './content/content.ts'
import { type GuardedText, joinedText } from './content/content-reader.ts'
import { createReading, type Reading } from './content/reading.ts'
import type { ContentScope } from './content/scopes/content-scope.ts'
import { readTexts } from './content/scopes/split.ts'
import type { Guard, Rejection } from './guard.ts'
import { type Outcome, recordSkipped, runGuards } from './run.ts'
import { auditStream } from './stream/audit-only.ts'
import { bufferStream } from './stream/buffered.ts'
import { createDelivery } from './stream/delivery.ts'
import type { GuardedStream } from './stream/guarded-stream.ts'
import { windowStream } from './stream/windowed.ts'
import type { Content } from './view.ts'
import { writeBack } from './write-back.ts'

/** `guardrails` of one scope and its name in metrics and logs. */
export type ScopedGuards = { scope: string; config: GuardrailsConfig }

export type GuardrailsOptions = Omit<GuardOptions, 'scope'> & {
  /** Guards of all requests, in order. */
  shared: readonly ScopedGuards[]
  /** Guards of single models, which run after the shared ones. */
  ofModels: readonly ScopedGuards[]
  /** Maximum buffered size of a streamed response, in bytes. */
  maxBufferedBytes: number
}

/** Guards of one request. */
type Guards = {
  readonly request: readonly Guard[]
  readonly response: readonly Guard[]
  readonly streaming: StreamingMode
}

/**
 * Compiles the guards of an LLM route; undefined if there are none. Requests and responses are checked; each
 * guard receives the content as modified by earlier ones.
 */
export function compileGuardrails(options: GuardrailsOptions, context: CompileContext): Policy | undefined {
  const { shared, ofModels, maxBufferedBytes: maxHeldBytes } = options
  const compile = ({ scope, config }: ScopedGuards) => compileGuards(config, { ...options, scope }, context)
  const sharedSets = shared.map(compile)
  const byModel = new Map<object, GuardSet>(ofModels.map((entry) => [entry.config, compile(entry)]))
  const all = [...sharedSets, ...byModel.values()]
  if (all.every(({ request, response }) => request.length + response.length === 0)) return undefined
  const hasResponseGuards = all.some(({ response }) => response.length > 0)
  const sharedOnly = joined(sharedSets)

  function guardsOf(message: Pick<LlmMessage, 'guardrailsOfModels'>): Guards {
    if (byModel.size === 0) return sharedOnly
    const configured = message.guardrailsOfModels()
    return configured.length === 0 ? sharedOnly : joined([...sharedSets, ...configured.map(setOf)])
  }

  function setOf(config: object): GuardSet {
    const set = byModel.get(config)
    if (set === undefined) throw new Error('guards of a model that were not compiled')
    return set
  }

  const { clock, threads } = context
  const check =
    (guards: readonly Guard[], reading: Reading, exchange: Exchange, replyHeaders?: Reply['headers']) =>
    (texts: readonly Content[] | undefined): Promise<Outcome> =>
      runGuards(guards, {
        phase: reading.phase,
        texts,
        unknownType: reading.takeUnknown(),
        exchange,
        replyHeaders,
        clock,
      })

  const policy = {
    name: 'guardrails',
    isOfModels: byModel.size > 0,
    onRequest(exchange: Exchange) {
      const results = exchange.llm?.results
      if (results && guardsOf(results).response.length > 0) results.check = policy.onReply
      const message = exchange.llm?.message
      if (message === undefined) return undefined
      message.readsAnswer = hasResponseGuards
      const { request, response, streaming } = guardsOf(message)
      message.checksStreams = response.length > 0 && streaming !== 'disabled'
      if (request.length === 0 || message.isAnswerOnly) return undefined
      const reading = createReading('request', scopesOf(request))
      return checkRequest(message, exchange, { reading, check: check(request, reading, exchange), threads })
    },
    onReply(exchange: Exchange, reply: Reply): Reply | Promise<Reply> {
      const message = exchange.llm?.message
      const answer = message?.answer
      if (message === undefined || answer === undefined) return reply
      const { response, streaming } = guardsOf(message)
      if (response.length === 0) return reply
      const reading = createReading('response', scopesOf(response))
      const checkAnswer = check(response, reading, exchange, reply.headers)
      if (answer.kind === 'whole')
        return checkWhole(reply, exchange, { reading, check: checkAnswer, threads })
      if (streaming === 'disabled') {
        recordSkipped(response, exchange, 'response')
        return reply
      }
      const stream: GuardedStream = {
        api: message.api,
        reader: contentReaders[message.api],
        source: sourceOf(reply.body),
        reading,
        check: checkAnswer,
        maxBufferedBytes: maxHeldBytes,
      }
      if (response.every(({ audit }) => audit)) return auditReply(reply, exchange, stream)
      return delayReply(reply, exchange, { stream, streaming })
    },
  }
  return policy
}

/** All scopes that guards name; undefined without any. */
function scopesOf(guards: readonly Guard[]): ReadonlySet<ContentScope> | undefined {
  const named = guards.flatMap(({ scopes }) => scopes ?? [])
  return named.length === 0 ? undefined : new Set(named.flatMap((scopes) => [...scopes]))
}

/**
 * Merges guard sets with the strictest mode. A scope without a mode is always checked, even if others disable
 * it.
 */
function joined(sets: readonly GuardSet[]): Guards {
  const modes = sets.flatMap(({ streaming }) => streaming ?? [])
  const mayBeDisabled = sets.every(
    ({ streaming, response }) => streaming !== undefined || response.length === 0,
  )
  const mode = streamingModes.find((each) => modes.includes(each)) ?? 'buffered'
  return {
    request: sets.flatMap(({ request }) => request),
    response: sets.flatMap(({ response }) => response),
    streaming: mode === 'disabled' && !mayBeDisabled ? 'buffered' : mode,
  }
}

/** Reading of content and its check. */
type Check = {
  reading: Reading
  check(texts: readonly Content[] | undefined): Promise<Outcome>
  threads: ThreadPool
}

async function checkRequest(
  message: LlmMessage,
  exchange: Exchange,
  { reading, check, threads }: Check,
): Promise<Reply | undefined> {
  const { api } = message
  const request = message.request()
  if (request === undefined) throw new Error('the request was not read')
  const reader = contentReaders[api]
  const texts = readableTexts(() => readTexts(reader, request.value, reading))
  const outcome = await check(texts?.map(contentOf))
  if (outcome.kind === 'rejected') return refusal(exchange, outcome)
  if (outcome.kind === 'changed' && texts !== undefined) {
    const { contents } = outcome
    const changed = { api, phase: 'request', json: request, texts, contents, scopes: reading.scopes } as const
    const bytes = writeBack(changed, threads)
    await message.replaceRequest(bytes instanceof Promise ? await bytes : bytes)
  }
  return undefined
}

async function checkWhole(
  reply: Reply,
  exchange: Exchange,
  { reading, check, threads }: Check,
): Promise<Reply> {
  const message = exchange.llm?.message
  const answer = message?.answer
  if (message === undefined || answer?.kind !== 'whole') throw new Error('the answer was not read')
  const reader = contentReaders[message.api]
  const texts = readableTexts(() => readTexts(reader, answer.json.value, reading))
  const outcome = await check(texts?.map(contentOf))
  if (outcome.kind === 'rejected') return refusal(exchange, outcome)
  if (outcome.kind === 'changed' && texts !== undefined) {
    const { json } = answer
    const place = { api: message.api, phase: 'response', scopes: reading.scopes } as const
    const changed = { ...place, json, texts, contents: outcome.contents }
    const body = await writeBack(changed, threads)
    return { ...reply, body: answer.isPlain ? plainText(body) : body }
  }
  return reply
}

function plainText(body: Buffer): Buffer {
  const text = parseJsonObject(body.toString())?.['text']
  if (typeof text !== 'string') throw new Error('the answer has no text')
  return Buffer.from(text)
}

function contentOf(text: GuardedText): Content {
  const { role, parts, scope, group } = text
  const content = { role, content: joinedText(text), fixed: parts.length === 0 }
  return scope === undefined ? content : { ...content, scope, group, isJson: parts[0]?.isJson }
}

/** Returns undefined for unreadable content. */
function readableTexts(read: () => GuardedText[]): GuardedText[] | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function auditReply(reply: Reply, exchange: Exchange, stream: GuardedStream): Reply {
  const body = auditStream({
    ...stream,
    refusalEvent: (rejection) => refusalEvent(exchange, rejection),
    onRejected: (guard) => recordGuard(exchange, guard),
  })
  return { ...reply, body }
}

function delayReply(
  reply: Reply,
  exchange: Exchange,
  { stream, streaming }: { stream: GuardedStream; streaming: StreamingMode },
): Promise<Reply> {
  const { source } = stream
  let guard = ''
  const delivery = createDelivery({
    head: { status: reply.status, headers: reply.headers },
    refusal: (rejection) => refusal(exchange, { rejection, guard }),
    refusalEvent: (rejection) => refusalEvent(exchange, rejection),
    onResume: () => source.resume(),
    onCancel: () => source.cancel(),
    onGone: (listener) => exchange.cancellation.onCancel(listener),
  })
  const held = {
    ...stream,
    delivery,
    onRejected(name: string) {
      guard = name
      recordGuard(exchange, name)
    },
  }
  if (streaming === 'windowed') windowStream(held)
  else bufferStream(held)
  return delivery.reply
}

function recordGuard(exchange: Exchange, guard: string): void {
  exchange.log.refusedBy ??= `guardrail: ${guard}`
}

function refusal(exchange: Exchange, { rejection, guard }: { rejection: Rejection; guard: string }): Reply {
  recordGuard(exchange, guard)
  const { status, headers, body } = rejection
  // Statuses without a body (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5).
  const isBare = status === 204 || status === 205 || status === 304
  return { status, headers: { ...headers }, body: isBare ? undefined : Buffer.from(body) }
}

function refusalEvent(exchange: Exchange, { status, body }: Rejection): string {
  const refused = { status, code: 'guardrail_intervention', message: body }
  return terminalEvent(exchange.llm?.message?.api, exchange.errorFormat, refused)
}
