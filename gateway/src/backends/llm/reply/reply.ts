import { GatewayError } from '../../../lib/gateway-error.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'
import type { LargeJson } from '../../../lib/json/large.ts'
import { answerLimits } from '../../../lib/json/limits.ts'
import { isLarge, type ReadJson, readJson, readJsonIncrementally } from '../../../lib/json/read.ts'
import { writeJsonSteps } from '../../../lib/json/write.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import { isSource, readAll } from '../../../net/http/body.ts'
import { type DecodeErrors, decode, isPlain } from '../../../net/http/content-encoding.ts'
import { createHeaderFilter, firstHeader } from '../../../net/http/headers.ts'
import { createSseParser, formatSseEvent, isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { errorBody, type Refusal, terminalEvent } from '../../../pipeline/errors.ts'
import type { Exchange, Usage } from '../../../pipeline/exchange.ts'
import { findAmbiguousLlmName } from '../../../pipeline/llm-names.ts'
import type { Candidate } from '../models/models.ts'
import type { Call } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { apiOf } from '../request/llm-message.ts'
import { isFinalUsage } from '../request/output-limit.ts'
import { readExactObject } from '../translate/exact-json.ts'
import type { Translation, TranslationContext } from '../translate/translate.ts'
import { maxLineBytes, relayStream, type StreamConversion } from './stream.ts'
import { createStreamWatch } from './stream-watch.ts'
import { generatedTextBytes, mergeUsage, modelIn, usageIn } from './usage.ts'

/** One provider's answer on its way to the client. */
export type Answering = {
  exchange: Exchange
  call: Call
  candidate: Candidate
  translation: Translation | undefined
  /** Bound on an answer that has to be read whole. */
  maxReplyBytes: number
  context: CompileContext
}

/**
 * The client's reply for an upstream's: untouched bytes where both speak the same API, translated otherwise, counted
 * either way. Throws `GatewayError` for an answer that is not what it should be, before anything was sent.
 */
export function answer(answering: Answering, reply: Reply): Reply | Promise<Reply> {
  const { call } = answering
  if (reply.status < 200 || reply.status > 299) return answerError(answering, reply)
  call.answered = true
  if (call.endpoint === 'passthrough') return { ...reply, headers: filterHeaders(reply.headers) }
  if (isEventStream(reply.headers)) return answerStream(answering, call.endpoint, reply)
  return answerWhole(answering, call.endpoint, reply)
}

async function answerWhole(answering: Answering, endpoint: Endpoint, reply: Reply): Promise<Reply> {
  const { call, translation, exchange } = answering
  const bytes = await readDecoded(answering, reply)
  const { workQueue } = answering.context
  const read =
    translation === undefined && exchange.llm?.message?.readsAnswer
      ? await readUnambiguous(bytes, workQueue)
      : undefined
  // A translated tool call has its input along: long numbers in it must survive.
  const reading = read
    ? objectIn(read)
    : translation
      ? readExactObject(bytes, workQueue)
      : readForUsage(bytes, workQueue)
  const message = reading instanceof Promise ? await reading : reading
  if (!message)
    throw new GatewayError('upstream_invalid', 'upstream answered something that is not a JSON object')
  const headers = filterDecodedHeaders(reply.headers)
  const upstreamEndpoint = translation ? translatedTo(endpoint) : endpoint
  const usage = usageIn(upstreamEndpoint, message)
  if (usage) recordUsage(exchange, call, usage)
  recordModel(exchange, modelIn(upstreamEndpoint, message))
  call.usageFinal = usage !== undefined && isFinalUsage(upstreamEndpoint, message)
  call.hasOutput = true
  call.generatedBytes = usage === undefined && endpoint !== 'embeddings' ? generatedTextBytes(message) : 0
  if (exchange.llm?.message && read?.kind === 'object')
    exchange.llm.message.answer = { kind: 'whole', json: read }
  if (!translation) return { status: reply.status, headers, body: bytes }
  headers['content-type'] = 'application/json'
  const translated = translation.reply(message, translationContext(answering))
  const body = isLarge(bytes)
    ? await workQueue.run(writeJsonSteps(translated))
    : Buffer.from(JSON.stringify(translated))
  if (exchange.llm?.message?.readsAnswer) {
    const json = isLarge(body)
      ? await readJson(body, workQueue)
      : ({ kind: 'object', text: body.toString(), value: translated } as const)
    if (json.kind !== 'object')
      throw new GatewayError('upstream_invalid', 'upstream answered too large an object')
    exchange.llm.message.answer = { kind: 'whole', json }
  }
  return { status: reply.status, headers, body }
}

function answerStream(answering: Answering, endpoint: Endpoint, reply: Reply): Reply {
  const { call, translation, exchange, context, candidate } = answering
  const { body } = reply
  if (!isPlain(firstHeader(reply.headers, 'content-encoding'))) {
    cancel(reply)
    throw new GatewayError(
      'upstream_invalid',
      'upstream sent a compressed event stream though it was asked not to',
    )
  }
  const upstreamEndpoint = translation ? translatedTo(endpoint) : endpoint
  const watch = createStreamWatch({
    endpoint: upstreamEndpoint,
    hideUsage: call.hideUsage,
    onUsage(usage, message) {
      recordUsage(exchange, call, upstreamEndpoint === 'messages' ? mergeUsage(call.usage, usage) : usage)
      recordModel(exchange, modelIn(upstreamEndpoint, message))
      // The opening report of a stream of messages counts the input only.
      const isWhole = upstreamEndpoint !== 'messages' || message['type'] === 'message_delta'
      call.usageFinal = isWhole && isFinalUsage(upstreamEndpoint, message)
    },
    onGenerated(bytes) {
      call.generatedBytes += bytes
      // What was reported before does not count this; clients could leave before the next report.
      call.usageFinal = false
    },
  })
  call.hasOutput = true
  const headers = filterDecodedHeaders(reply.headers)
  // Proxies between here and the client would otherwise hold events back.
  headers['x-accel-buffering'] ??= 'no'
  headers['cache-control'] ??= 'no-cache'
  const source = isSource(body) ? body : wholeSource(body)
  const relayed = relayStream(source, {
    watch,
    conversion: translation && streamConversion(translation, translationContext(answering)),
    errorEvent: (error) => errorEvent(exchange, endpoint, error),
    onFirstByte() {
      call.firstByteAt = context.clock.monotonic()
    },
    onFailure(error) {
      exchange.log.failure ??= error
      candidate.target.meter.upstreamError(error instanceof GatewayError ? error.code : 'internal')
    },
  })
  if (exchange.llm?.message) exchange.llm.message.answer = { kind: 'stream' }
  return { status: reply.status, headers, body: relayed }
}

/** The other of the two chat APIs. */
function translatedTo(endpoint: Endpoint): Endpoint {
  return endpoint === 'chat' ? 'messages' : 'chat'
}

function translationContext({ exchange, call, context }: Answering): TranslationContext {
  return {
    requestModel: exchange.facts.llm?.requestModel ?? '',
    now: () => context.clock.now(),
    includeUsage: !call.hideUsage,
  }
}

function streamConversion(translation: Translation, context: TranslationContext): StreamConversion {
  const translator = translation.stream(context)
  let out = ''
  const parser = createSseParser({
    maxEventBytes: maxLineBytes,
    onEvent(event) {
      for (const translated of translator.event(event)) out += formatSseEvent(translated)
    },
  })
  return (lines) => {
    out = ''
    parser.push(lines)
    if (translator.state === 'ended') for (const closing of translator.end()) out += formatSseEvent(closing)
    return out
  }
}

/** An answer that is checked must not be readable in two ways. */
async function readUnambiguous(bytes: Buffer, workQueue: WorkQueue): Promise<ReadJson> {
  const read = await readJson(bytes, workQueue)
  if (read.kind !== 'object') return read
  return findAmbiguousLlmName(read.value) === undefined
    ? read
    : { kind: 'invalid', message: 'of names that differ only in case' }
}

function objectIn(read: ReadJson | LargeJson): JsonObject | undefined {
  return read.kind === 'object' ? read.value : undefined
}

function recordUsage(exchange: Exchange, call: Call, usage: Usage): void {
  call.usage = usage
  exchange.facts.usage = usage
}

/** The closing report of a stream of messages does not repeat the name. */
function recordModel({ facts }: Exchange, model: string | undefined): void {
  if (facts.llm && model !== undefined) facts.llm.responseModel = model
}

/** An upstream's refusal keeps its status. Its text is passed on where it is of the client's API, or can be made so. */
async function answerError(answering: Answering, reply: Reply): Promise<Reply> {
  const { exchange, call, translation } = answering
  const { status } = reply
  if (status < 400) {
    cancel(reply)
    throw new GatewayError(
      'upstream_invalid',
      `upstream answered with status ${status}; redirects are not followed`,
    )
  }
  const bytes = withoutCredential(await readDecoded(answering, reply), answering.candidate.target.credential)
  const headers = filterDecodedHeaders(reply.headers)
  if (call.endpoint === 'passthrough') return { status, headers, body: bytes }
  const isJson = !isLarge(bytes) && parseJsonObject(bytes.toString()) !== undefined
  if (isJson && !translation) return { status, headers, body: bytes }
  headers['content-type'] = 'application/json'
  if (isJson && translation) {
    return { status, headers, body: Buffer.from(JSON.stringify(translation.error(status, bytes.toString()))) }
  }
  const refusal = { status, code: 'upstream_error', message: `upstream answered with status ${status}` }
  return { status, headers, body: Buffer.from(errorBody(exchange.errorFormat, refusal).body) }
}

/** Some servers quote the key they refuse, and it is not the client's to know. */
function withoutCredential(bytes: Buffer, credential: string | undefined): Buffer {
  if (credential === undefined || !bytes.includes(credential)) return bytes
  return Buffer.from(bytes.toString().replaceAll(credential, '[hidden]'))
}

/** The event that ends a stream in place of its own end. */
function errorEvent(exchange: Exchange, endpoint: Endpoint, error: Error): string {
  const code = error instanceof GatewayError ? error.code : 'internal'
  const message = error instanceof GatewayError ? error.message : 'internal error'
  const refusal: Refusal = { status: code === 'upstream_timeout' ? 504 : 502, code, message }
  // The empty line closes an event whose own closing line has not come.
  return `\n${terminalEvent(apiOf(endpoint), exchange.errorFormat, refusal)}`
}

const decodeErrors: DecodeErrors = {
  tooLarge: 'upstream_too_large',
  malformed: 'upstream_invalid',
  unknown: 'upstream_invalid',
}

function readDecoded({ maxReplyBytes }: Answering, { body, headers }: Reply): Promise<Buffer> {
  const bytes = readAll(body, maxReplyBytes, 'upstream_too_large')
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding === undefined || isPlain(encoding)) return bytes
  return bytes.then((coded) => decode(coded, encoding, maxReplyBytes, decodeErrors))
}

/** An answer that is forwarded unchecked: read for its usage. */
function readForUsage(
  bytes: Buffer,
  workQueue: WorkQueue,
): JsonObject | undefined | Promise<JsonObject | undefined> {
  if (!isLarge(bytes)) return parseJsonObject(bytes.toString())
  const options = { limits: answerLimits, unchecked: JSON.parse }
  return readJsonIncrementally(bytes, workQueue, options).then(objectIn)
}

/** Frees the connection of an answer nobody reads. */
export function cancel({ body }: Reply): void {
  if (isSource(body)) body.cancel()
}

function wholeSource(body: Uint8Array | undefined) {
  return {
    start(sink: { write(chunk: Uint8Array): boolean; end(): void }) {
      if (body) sink.write(body)
      sink.end()
    },
    resume() {},
    cancel() {},
  }
}

/** What belongs to the provider's own site and limits, not to the gateway's. */
const withheld: ReadonlySet<string> = new Set([
  'set-cookie',
  'alt-svc',
  'strict-transport-security',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
])

const isWithheld = (name: string) => withheld.has(name) || name.startsWith('access-control-')

const filterHeaders = createHeaderFilter(isWithheld)
const filterDecodedHeaders = createHeaderFilter(
  (name) => name === 'content-length' || name === 'content-encoding' || isWithheld(name),
)
