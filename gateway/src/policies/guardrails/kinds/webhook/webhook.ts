import { type CancellationSource, createCancellation } from '../../../../lib/cancellation.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import { writeJsonSteps } from '../../../../lib/json/write.ts'
import type { WorkQueue } from '../../../../lib/scheduling/work-queue.ts'
import { isSource, readAll } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send, UpstreamConnection } from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { sendToService } from '../../../../pipeline/tracing/service-calls.ts'
import { callerOf } from '../../../../upstream/credentials/caller.ts'
import type { Authorize } from '../../../../upstream/credentials/credentials.ts'
import { compileDestination, type DestinationSettings } from '../../../../upstream/destination.ts'
import { type CallServers, compileNamedServers, singleServer } from '../../../../upstream/endpoints.ts'
import {
  CheckFailure,
  type CheckInput,
  type CompiledKind,
  type GuardText,
  type Phase,
  type Verdict,
} from '../../guard.ts'
import type { WebhookConfig, WebhookPlace } from './config.ts'
import { compileHead } from './headers.ts'
import type { WebhookLimits } from './limits.ts'
import { createResponseReader, type ResponseReader } from './response.ts'
import { createSlots, type Slots } from './slots.ts'

const defaultTimeoutMs = 10_000
const maxAnswerBytes = 2 * 1024 * 1024
/** Maximum characters of content serialised in one step. */
const maxInlineLength = 256 * 1024

/** Compiled settings of the calls of one webhook. */
type Caller = {
  readonly servers: CallServers
  readonly connection: UpstreamConnection
  readonly send: Send
  readonly slots: Slots
  readonly timeoutMs: number
  readonly phase: Phase
  readonly headOf: ReturnType<typeof compileHead>
  readonly readAnswer: ResponseReader
  readonly workQueue: WorkQueue
}

export type WebhookOptions = WebhookPlace & { limits: WebhookLimits }

/**
 * Compiles a webhook. Throws on errors that `checkWebhook` reports, and if a file of its backend is not
 * readable.
 */
export function compileWebhook(
  config: WebhookConfig,
  { phase, backends, limits }: WebhookOptions,
  context: CompileContext,
): CompiledKind {
  const { target } = config
  const servers =
    target.host === undefined
      ? compileNamedServers(target.backend, backends, context)
      : singleServer(compileDestination({ host: target.host, node: target, policies: [] }, context))
  const { key } = servers
  const slots = context.retained(`guardrails/webhook/${key}`, () => createSlots(context.memory, key))
  slots.resize(limits.maxConnections)
  const caller: Caller = {
    servers,
    connection: connectionOf(servers.settings, limits),
    send: context.send,
    slots,
    timeoutMs: servers.settings.requestTimeoutMs ?? defaultTimeoutMs,
    phase,
    headOf: compileHead(config, phase),
    readAnswer: createResponseReader(phase),
    workQueue: context.workQueue,
  }
  return {
    audit: config.action === 'audit',
    failOpen: config.failureMode === 'failOpen' || config.failureMode === 'FailOpen',
    check: (question) => requestVerdict(caller, question),
  }
}

/** Applies the limit to the pool as well, because a slot is released before its connection. */
function connectionOf({ connection }: DestinationSettings, limits: WebhookLimits): UpstreamConnection {
  const { maxConnections, keepAliveMs } = limits
  const key = `webhook ${maxConnections} ${keepAliveMs} ${connection.key}`
  const most = maxConnections === 0 ? Number.POSITIVE_INFINITY : maxConnections
  return { ...connection, key, keepAliveMs, maxConnections: most }
}

/**
 * Calls a webhook. One timeout covers the wait for a slot, the connection, and the head and body of the
 * response, and cancels the call.
 */
function requestVerdict(caller: Caller, question: CheckInput): Promise<Verdict> {
  const { slots } = caller
  const cancellation = createCancellation()
  return new Promise((resolve, reject) => {
    let state: 'waiting' | 'calling' | 'settled' = 'waiting'
    const timer = setTimeout(() => {
      // Settles before the cancellation, which makes the call fail with another error.
      refuse(new CheckFailure('webhook timed out'))
      cancellation.cancel()
    }, caller.timeoutMs)
    question.exchange.cancellation.onCancel(() => {
      refuse(new CheckFailure('the client closed the connection'))
      cancellation.cancel()
    })

    function settle(): boolean {
      const before = state
      state = 'settled'
      if (before === 'settled') return false
      clearTimeout(timer)
      if (before === 'calling') slots.release()
      return true
    }

    function refuse(error: unknown): void {
      if (settle()) reject(error)
    }

    function enter(): void {
      // The caller was cancelled while waiting.
      if (state === 'settled') {
        slots.release()
        return
      }
      state = 'calling'
      call(caller, question, cancellation).then((verdict) => {
        if (settle()) resolve(verdict)
      }, refuse)
    }

    const turn = slots.acquire(cancellation)
    if (turn === undefined) enter()
    else void turn.then(enter)
  })
}

async function call(
  caller: Caller,
  question: CheckInput,
  cancellation: CancellationSource,
): Promise<Verdict> {
  const content = bodyOf(caller.phase, question.texts)
  const length = question.texts.reduce((sum, text) => sum + text.content.length, 0)
  const body =
    length > maxInlineLength
      ? await caller.workQueue.run(writeJsonSteps(content))
      : Buffer.from(JSON.stringify(content))
  try {
    const { request, authorize } = requestTo(caller, question, { body, cancellation })
    const authorizing = authorize?.apply(request, callerOf(question.exchange))
    if (authorizing) await authorizing
    const reply = await sendToService(question.exchange.trace, request, caller.send)
    const bytes = readReply(reply, body.byteLength)
    return caller.readAnswer(bytes instanceof Promise ? await bytes : bytes)
  } catch (error) {
    if (error instanceof GatewayError) throw new CheckFailure(failureOf(error), { cause: error })
    throw error
  }
}

function requestTo(
  { servers, connection, headOf }: Caller,
  question: CheckInput,
  { body, cancellation }: { body: Buffer; cancellation: CancellationSource },
): { request: OutgoingRequest; authorize: Authorize | undefined } {
  const { method, path, headers } = headOf(question)
  const server = servers.choose()
  if (server === undefined) throw new CheckFailure('webhook backend has no endpoints')
  // Settings of the backend override values from the client.
  server.editRequestHeaders?.(headers)
  const request: OutgoingRequest = {
    origin: server.origin,
    path,
    method,
    headers,
    body,
    cancellation,
    connection,
    acceptsWhole: true,
    repeatable: true,
  }
  return { request, authorize: server.authorize }
}

/** Creates the body of the protocol: role and content of each text, without other members. */
function bodyOf(phase: Phase, texts: readonly GuardText[]): JsonObject {
  const messages = texts.map(({ role, content }) => ({ role, content }))
  const body = phase === 'request' ? { messages } : { choices: messages.map((message) => ({ message })) }
  return { body }
}

/** Reads the response. Modified content may be as large as the request. */
function readReply({ headers, body }: Reply, sentBytes: number): Buffer | Promise<Buffer> {
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    if (isSource(body)) body.cancel()
    throw new CheckFailure('webhook response has an unsupported content-encoding')
  }
  const maxBytes = Math.max(maxAnswerBytes, 2 * sentBytes)
  const isAtHand = body instanceof Uint8Array && body.byteLength <= maxBytes
  return isAtHand
    ? Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    : readAll(body, maxBytes, 'upstream_too_large')
}

function failureOf({ code }: GatewayError): string {
  switch (code) {
    case 'upstream_connect':
      return 'webhook connection failed'
    case 'upstream_timeout':
      return 'webhook timed out'
    case 'upstream_too_large':
      return 'webhook response too large'
    default:
      return `webhook call failed: ${code}`
  }
}
