import type { CancellationSource } from '../../../../lib/cancellation.ts'
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
import { type Authorize, sendAuthorized } from '../../../../upstream/credentials/credentials.ts'
import type { CallServers } from '../../../../upstream/endpoints.ts'
import {
  CheckFailure,
  type CheckInput,
  type CompiledKind,
  type GuardText,
  type Phase,
  type Verdict,
} from '../../guard.ts'
import { createGate, type Gate } from '../service/gate.ts'
import { failureOf, limitedConnection } from '../service/service.ts'
import { createSlots } from '../service/slots.ts'
import { compileTarget } from '../service/target.ts'
import type { WebhookConfig, WebhookPlace } from './config.ts'
import { compileHead } from './headers.ts'
import type { WebhookLimits } from './limits.ts'
import { createResponseReader, type ResponseReader } from './response.ts'

const defaultTimeoutMs = 10_000
const maxAnswerBytes = 2 * 1024 * 1024
/** Maximum characters of content serialised in one step. */
const maxInlineLength = 256 * 1024

/** Compiled settings of the calls of one webhook. */
type Caller = {
  readonly servers: CallServers
  readonly connection: UpstreamConnection
  readonly send: Send
  readonly within: Gate
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
  const servers = compileTarget(config.target, backends, context)
  const { key } = servers
  const slots = context.retained(`guardrails/webhook/${key}`, () => createSlots(context.memory, key))
  slots.resize(limits.maxConnections)
  const caller: Caller = {
    servers,
    connection: limitedConnection(servers.settings.connection, limits),
    send: context.send,
    within: createGate({
      kind: 'webhook',
      slots,
      timeoutMs: servers.settings.requestTimeoutMs ?? defaultTimeoutMs,
    }),
    phase,
    headOf: compileHead(config, phase),
    readAnswer: createResponseReader(phase),
    workQueue: context.workQueue,
  }
  return {
    audit: config.action === 'audit',
    failOpen: config.failureMode === 'failOpen' || config.failureMode === 'FailOpen',
    check: (question) =>
      caller.within(question.exchange, (cancellation) => call(caller, question, cancellation)),
  }
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
    const { exchange } = question
    const send = () => sendToService(exchange.trace, request, caller.send)
    const reply = await sendAuthorized(authorize, { request, caller: callerOf(exchange) }, send)
    const bytes = readReply(reply, body.byteLength)
    return caller.readAnswer(bytes instanceof Promise ? await bytes : bytes)
  } catch (error) {
    if (error instanceof GatewayError) throw new CheckFailure(failureOf('webhook', error), { cause: error })
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
