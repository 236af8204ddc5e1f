import { runAtOnce } from '../../lib/breathe.ts'
import { type CancellationSource, createCancellation } from '../../lib/cancellation.ts'
import type { BodySink, BodySource } from '../../net/body.ts'
import { readAll } from '../../net/body.ts'
import type { OutgoingRequest, Reply } from '../../net/send.ts'
import { replyToError } from '../../pipeline/errors.ts'
import type { Exchange, RequestFacts, Usage } from '../../pipeline/exchange.ts'
import { type FixtureContext, fixtureContext, fixtureExchange } from '../../pipeline/fixtures.ts'
import type { Prices } from './catalog/prices.ts'
import type { LlmConfig } from './config.ts'
import { compileLlm } from './index.ts'
import type { Llm } from './llm.ts'

/** What tests of LLM calls stand on: a provider that is a function, and a call made as the pipeline makes it. */
export type FixtureProvider = (request: OutgoingRequest) => Reply | Promise<Reply>

export type FixtureGateway = {
  llm: Llm
  context: FixtureContext
  /** Every request a provider got, oldest first. */
  sent: OutgoingRequest[]
  /** What the meters were told, for example `tokens gpt-4o openai 12`. */
  metered: string[]
}

/** Chooses in [0, 1) what a random choice comes to. */
export type FixtureOptions = {
  random?: () => number
  maxBufferSize?: number
  maxReplyBytes?: number
  prices?: Prices
}

export function fixtureGateway(
  config: LlmConfig,
  provider: FixtureProvider,
  { random, maxBufferSize = 1024 * 1024, ...limits }: FixtureOptions = {},
): FixtureGateway {
  return fixtureLlm(
    (context) => runAtOnce(compileLlm(config, context, { maxBufferSize, ...limits })),
    provider,
    random,
  )
}

/** A gateway whose LLM traffic is compiled by the test. */
export function fixtureLlm(
  compile: (context: FixtureContext) => Llm,
  provider: FixtureProvider,
  random?: () => number,
): FixtureGateway {
  const sent: OutgoingRequest[] = []
  const metered: string[] = []
  const base = fixtureContext()
  const context: FixtureContext = {
    ...base,
    random: random ?? base.random,
    readFile: (path) => `content-of-${path}\n`,
    send: async (request) => {
      sent.push(request)
      return provider(request)
    },
    metrics: {
      ...base.metrics,
      llm: (model, kind) => ({
        done: () => metered.push(`done ${model} ${kind}`),
        tokens: (usage: Usage, group) =>
          metered.push(`tokens ${model} ${kind} ${usage.totalTokens} ${group}`.trim()),
        upstreamError: (code) => metered.push(`error ${model} ${kind} ${code}`),
        cost: (amount, group) => metered.push(`cost ${model} ${kind} ${amount} ${group}`.trim()),
        unknownCost: (reason) => metered.push(`cost ${reason} ${model} ${kind}`),
      }),
    },
  }
  return { llm: compile(context), context, sent, metered }
}

export type FixtureCall = Partial<Pick<RequestFacts, 'method' | 'path' | 'query' | 'headers'>> & {
  /** JSON value, or the bytes themselves. */
  body?: unknown
  mayUseModel?: (model: string) => boolean
  allowedModels?: string[]
  cancellation?: CancellationSource
  forwarding?: Exchange['forwarding']
  credential?: string
  /** Somebody checks the answer. */
  readsAnswer?: boolean
}

export type FixtureOutcome = {
  status: number
  headers: Reply['headers']
  text: string
  exchange: Exchange
}

/** Makes one call and reads its answer to the end, as the pipeline and a client do. */
export async function call(gateway: FixtureGateway, request: FixtureCall): Promise<FixtureOutcome> {
  const { reply, exchange } = await open(gateway, request)
  const text = (await readAll(reply.body, 100_000_000, 'internal')).toString()
  gateway.llm.llmRequest.onEnd?.(exchange)
  return { status: reply.status, headers: reply.headers, text, exchange }
}

/** Makes one call up to the head of its answer; `onEnd` is left to the test. */
export async function open(
  gateway: FixtureGateway,
  request: FixtureCall,
): Promise<{ reply: Reply; exchange: Exchange }> {
  const exchange = exchangeFor(gateway, request)
  const { llmRequest, backend } = gateway.llm
  try {
    const refusal = await llmRequest.onRequest?.(exchange)
    if (request.readsAnswer && exchange.llmMessage) exchange.llmMessage.readsAnswer = true
    return { reply: refusal ?? (await backend(exchange)), exchange }
  } catch (error) {
    return { reply: replyToError(exchange, error), exchange }
  }
}

function exchangeFor({ llm }: FixtureGateway, request: FixtureCall): Exchange {
  const { method = 'POST', path = '/v1/chat/completions', query = '', headers = {}, body, ...rest } = request
  const received = fixtureExchange({ method, path, query, headers })
  const exchange: Exchange = {
    ...received,
    body: bytesOf(body),
    cancellation: rest.cancellation ?? createCancellation(),
    mayUseModel: rest.mayUseModel,
    forwarding: rest.forwarding,
    credential: rest.credential,
    allowedModels: rest.allowedModels,
    errorFormat: llm.errorFormat(received.facts.request),
    keyGroup: 'team',
  }
  return exchange
}

function bytesOf(body: unknown): Uint8Array | undefined {
  if (body === undefined || body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

export function jsonReply(body: unknown, status = 200, headers: Reply['headers'] = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  }
}

/** A stream that says these chunks and then ends, or fails with an error. */
export function streamReply(chunks: readonly (string | Uint8Array)[], failure?: Error): Reply {
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body: chunkSource(chunks, failure) }
}

function chunkSource(chunks: readonly (string | Uint8Array)[], failure: Error | undefined): BodySource {
  let sink: BodySink | undefined
  let next = 0
  let over = false

  function flow(): void {
    while (sink && !over) {
      const chunk = chunks[next]
      if (chunk === undefined) {
        over = true
        if (failure) sink.fail(failure)
        else sink.end()
        return
      }
      next += 1
      if (!sink.write(Buffer.from(chunk))) return
    }
  }

  return {
    start(reader) {
      sink = reader
      flow()
    },
    resume: flow,
    cancel() {
      over = true
    },
  }
}

/** The JSON body a provider was sent. */
export function bodyOf(request: OutgoingRequest | undefined): unknown {
  const body = request?.body
  if (body instanceof Uint8Array || typeof body === 'string') return JSON.parse(Buffer.from(body).toString())
  return undefined
}

/** A chat completion as OpenAI answers it. */
export function completion(
  text: string,
  usage: unknown = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 },
) {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-4o-2024-08-06',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage,
  }
}

export const chatBody = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello there' }] }
