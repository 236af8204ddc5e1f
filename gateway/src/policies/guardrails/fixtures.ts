import { type CancellationSource, createCancellation } from '../../lib/cancellation.ts'
import { readJsonObject } from '../../lib/json-text.ts'
import type { BodySink, BodySource } from '../../net/body.ts'
import { readAll } from '../../net/body.ts'
import type { OutgoingRequest, Reply } from '../../net/send.ts'
import { replyToError } from '../../pipeline/errors.ts'
import type { Exchange, Facts } from '../../pipeline/exchange.ts'
import { type FixtureContext, fixtureContext, fixtureExchange } from '../../pipeline/fixtures.ts'
import type { LlmApi, LlmMessage } from '../../pipeline/llm-message.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { GuardrailsConfig } from './config.ts'
import { compileGuardrails, type GuardrailsOptions } from './guardrails.ts'

/** What tests of guards stand on: webhooks that are functions, and calls made as the pipeline makes them. */
export type FixtureWebhook = (request: OutgoingRequest) => Reply | Promise<Reply>

export type FixtureGuards = {
  policy: Policy
  context: FixtureContext
  /** Every call to a webhook, oldest first. */
  calls: OutgoingRequest[]
}

export function fixtureGuards(
  config: GuardrailsConfig,
  webhook: FixtureWebhook,
  options: Partial<GuardrailsOptions> = {},
): FixtureGuards {
  const calls: OutgoingRequest[] = []
  const context: FixtureContext = {
    ...fixtureContext(),
    send: async (request) => {
      calls.push(request)
      return webhook(request)
    },
  }
  const policy = compileGuardrails(
    {
      shared: [{ place: 'llm', config }],
      ofModels: [],
      backends: [],
      limits: { maxConnections: 100, keepAliveMs: 300_000 },
      maxHeldBytes: 1024 * 1024,
      ...options,
    },
    context,
  )
  if (policy === undefined) throw new Error('no guards')
  return { policy, context, calls }
}

/** What a model says: an object, or the events of a stream. */
export type FixtureAnswer = string | readonly (string | Uint8Array)[] | BodySource

export type FixtureCall = {
  api?: LlmApi
  request?: object | string
  answer?: FixtureAnswer
  cancellation?: CancellationSource
  facts?: Partial<Facts>
  /** Guards of the models that may be asked, as configured. */
  guardrailsOfModels?: readonly object[]
  replyHeaders?: Reply['headers']
}

export type FixtureOutcome = {
  status: number
  headers: Reply['headers']
  text: string
  /** The body that went to the model; undefined where it was not asked. */
  asked: string | undefined
  exchange: Exchange
}

/** Makes one call and reads its answer to the end. */
export async function pass(guards: FixtureGuards, call: FixtureCall = {}): Promise<FixtureOutcome> {
  const { reply, exchange, asked } = await open(guards, call)
  const text = (await readAll(reply.body, 100_000_000, 'internal')).toString()
  return { status: reply.status, headers: reply.headers, text, asked, exchange }
}

/** Makes one call up to the head of its answer. */
export async function open({ policy }: FixtureGuards, call: FixtureCall = {}) {
  const { exchange, state } = exchangeFor(call)
  let reply: Reply
  let asked: string | undefined
  try {
    const refusal = await policy.onRequest?.(exchange)
    if (refusal === undefined) asked = state.request
    reply = refusal ?? answerOf(call, state)
  } catch (error) {
    reply = replyToError(exchange, error)
  }
  try {
    reply = (await policy.onReply?.(exchange, reply)) ?? reply
  } catch (error) {
    reply = replyToError(exchange, error)
  }
  return { reply, exchange, asked }
}

type State = { request: string; message: LlmMessage | undefined }

function exchangeFor({ api = 'chat', request = chatRequest, facts = {}, ...call }: FixtureCall) {
  const text = typeof request === 'string' ? request : JSON.stringify(request)
  const state: State = { request: text, message: undefined }
  const message: LlmMessage = {
    api,
    request: () => objectOf(state.request),
    async replaceRequest(replaced) {
      state.request = objectOf(replaced.toString()).text
    },
    guardrailsOfModels: () => call.guardrailsOfModels ?? [],
    readsAnswer: false,
    answer: undefined,
  }
  state.message = message
  const exchange: Exchange = {
    ...fixtureExchange({}, { llmRequest: objectOf(text).value, ...facts }),
    cancellation: call.cancellation ?? createCancellation(),
    errorFormat: api === 'messages' ? 'anthropic' : 'openai',
    llmMessage: message,
  }
  return { exchange, state }
}

function answerOf({ answer = chatAnswer('Hello'), replyHeaders = {} }: FixtureCall, state: State): Reply {
  if (typeof answer === 'string') {
    if (state.message) state.message.answer = { kind: 'whole', json: objectOf(answer) }
    return {
      status: 200,
      headers: { 'content-type': 'application/json', ...replyHeaders },
      body: Buffer.from(answer),
    }
  }
  if (state.message) state.message.answer = { kind: 'stream' }
  const body = 'start' in answer ? answer : chunkSource(answer)
  return { status: 200, headers: { 'content-type': 'text/event-stream', ...replyHeaders }, body }
}

function objectOf(text: string) {
  const json = readJsonObject(text)
  if (json.kind !== 'object') throw new Error(`no JSON object: ${text}`)
  return json
}

/** A body of these chunks. */
function chunkSource(chunks: readonly (string | Uint8Array)[]): BodySource {
  let sink: BodySink | undefined
  let next = 0
  let over = false

  function flow(): void {
    while (sink && !over) {
      const chunk = chunks[next]
      if (chunk === undefined) {
        over = true
        sink.end()
        return
      }
      next += 1
      if (!sink.write(Buffer.from(chunk))) return
    }
  }

  return {
    start(to) {
      sink = to
      flow()
    },
    resume: flow,
    cancel() {
      over = true
    },
  }
}

const chatRequest = { model: 'm', messages: [{ role: 'user', content: 'Say mask' }] }

export function chatAnswer(content: string): string {
  return JSON.stringify({
    id: 'c1',
    choices: [{ index: 0, message: { role: 'assistant', content, refusal: null }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  })
}

export function jsonReply(body: unknown, status = 200): Reply {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) }
}

/** A webhook's answer with this action. */
export function acts(action: unknown): FixtureWebhook {
  return () => jsonReply({ action })
}

/** The JSON a webhook was sent. */
export function sentTo(request: OutgoingRequest | undefined): unknown {
  const body = request?.body
  return body instanceof Uint8Array ? JSON.parse(Buffer.from(body).toString()) : undefined
}

/** A webhook that replaces `mask` by `****` in whatever it is shown. */
export const masking: FixtureWebhook = (request) => {
  const body: unknown = JSON.parse(JSON.stringify(sentTo(request)).replaceAll('mask', '****'))
  const changed = typeof body === 'object' && body !== null && 'body' in body ? body.body : undefined
  return jsonReply({ action: { body: changed } })
}

export const webhookGuard = { webhook: { target: { host: 'guard.test:8000' } } } as const
