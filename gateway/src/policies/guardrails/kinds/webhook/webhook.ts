import { type CancellationSource, createCancellation } from '../../../../lib/cancellation.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { JsonObject } from '../../../../lib/json/json.ts'
import { writeJsonSteps } from '../../../../lib/json/write.ts'
import type { WorkQueue } from '../../../../lib/scheduling/work-queue.ts'
import { isSource, readAll } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send, UpstreamConnection } from '../../../../net/http-client/send.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import {
  compileDestination,
  compileNamedDestination,
  type Destination,
} from '../../../../upstream/destination.ts'
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
/** Characters of content that are written at once. */
const maxInlineLength = 256 * 1024

/** Asks webhooks one question: everything about a call that is known beforehand. */
type Caller = {
  readonly destination: Destination
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

/** Compiles a webhook. Throws on what `checkWebhook` reports, and when a file of its backend cannot be read. */
export function compileWebhook(
  config: WebhookConfig,
  { phase, backends, limits }: WebhookOptions,
  context: CompileContext,
): CompiledKind {
  const { target } = config
  const destination =
    target.host === undefined
      ? compileNamedDestination(target.backend, backends, context)
      : compileDestination({ host: target.host, node: target, policies: [] }, context)
  const slots = context.retained(`guardrails/webhook/${destination.origin}`, createSlots)
  slots.resize(limits.maxConnections)
  const caller: Caller = {
    destination,
    connection: connectionOf(destination, limits),
    send: context.send,
    slots,
    timeoutMs: destination.requestTimeoutMs ?? defaultTimeoutMs,
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

/** The pool of an origin keeps the limit too: a slot is free a moment before its connection is. */
function connectionOf({ connection }: Destination, limits: WebhookLimits): UpstreamConnection {
  const { maxConnections, keepAliveMs } = limits
  const key = `webhook ${maxConnections} ${keepAliveMs} ${connection.key}`
  const most = maxConnections === 0 ? Number.POSITIVE_INFINITY : maxConnections
  return { ...connection, key, keepAliveMs, maxConnections: most }
}

/**
 * One call, under one time limit for the wait for a connection, the connection, the head and the body of the answer. The
 * call itself has no limits of its own: it is cancelled.
 */
function requestVerdict(caller: Caller, question: CheckInput): Promise<Verdict> {
  const { slots } = caller
  const cancellation = createCancellation()
  return new Promise((resolve, reject) => {
    let state: 'waiting' | 'calling' | 'settled' = 'waiting'
    const timer = setTimeout(() => {
      // Settled before the call is cancelled, because that makes it fail with another error.
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
      // Who gave up while waiting needs no turn.
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
    const reply = await caller.send(requestTo(caller, question, { body, cancellation }))
    const bytes = readReply(reply, body.byteLength)
    return caller.readAnswer(bytes instanceof Promise ? await bytes : bytes)
  } catch (error) {
    if (error instanceof GatewayError) throw new CheckFailure(failureOf(error), { cause: error })
    throw error
  }
}

function requestTo(
  { destination, connection, headOf }: Caller,
  question: CheckInput,
  { body, cancellation }: { body: Buffer; cancellation: CancellationSource },
): OutgoingRequest {
  const { method, path, headers } = headOf(question)
  // What the backend is configured with holds against everything that comes from a client.
  destination.editRequestHeaders?.(headers)
  destination.authorize?.(headers, question.exchange.auth.credential)
  return {
    origin: destination.origin,
    path,
    method,
    headers,
    body,
    cancellation,
    connection,
    acceptsWhole: true,
    repeatable: true,
  }
}

/** The exact body of the protocol: role and content, both texts, and nothing else. */
function bodyOf(phase: Phase, texts: readonly GuardText[]): JsonObject {
  const messages = texts.map(({ role, content }) => ({ role, content }))
  const body = phase === 'request' ? { messages } : { choices: messages.map((message) => ({ message })) }
  return { body }
}

/** New content may be as large as what was sent. */
function readReply({ headers, body }: Reply, sentBytes: number): Buffer | Promise<Buffer> {
  const encoding = firstHeader(headers, 'content-encoding')
  if (encoding !== undefined && encoding !== 'identity') {
    if (isSource(body)) body.cancel()
    throw new CheckFailure('webhook answered in an encoding it was not asked for')
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
      return 'webhook cannot be connected to'
    case 'upstream_timeout':
      return 'webhook timed out'
    case 'upstream_too_large':
      return 'webhook answered more than is read'
    default:
      return `webhook call failed: ${code}`
  }
}
