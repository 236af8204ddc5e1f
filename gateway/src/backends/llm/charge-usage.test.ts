import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../test/fixtures/llm.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { readAll } from '../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../net/http-client/send.ts'
import type { Prices } from './catalog/prices.ts'

// One call with two models: `a` of OpenAI, then `b` of Anthropic.

const config = {
  models: [
    { name: 'a', provider: 'openai' as const, params: { baseUrl: 'http://a', model: 'gpt-a' } },
    { name: 'b', provider: 'anthropic' as const, params: { baseUrl: 'http://b', model: 'claude-b' } },
  ],
  virtualModels: [
    {
      name: 'v',
      routing: {
        failover: {
          targets: [
            { model: 'a', priority: 1 },
            { model: 'b', priority: 2 },
          ],
        },
      },
    },
  ],
}

/** A token of `a` costs 2 picodollars, one of `b` 5; `b` has no price if `isPriced` is false. */
function gatewayOf(answers: { a: () => Reply; b?: () => Reply }, isPriced = true) {
  const prices: Prices = (provider, _models, usage) => {
    if (provider === 'openai') return { kind: 'cost', amount: BigInt(usage.totalTokens * 2) }
    return isPriced ? { kind: 'cost', amount: BigInt(usage.totalTokens * 5) } : { kind: 'missing' }
  }
  const send = ({ origin }: OutgoingRequest) =>
    origin === 'http://a' ? answers.a() : (answers.b ?? message)()
  return fixtureGateway(config, send, { prices })
}

const message = () =>
  jsonReply({
    type: 'message',
    model: 'claude-b-1',
    content: [{ type: 'text', text: 'hi' }],
    usage: { input_tokens: 10, output_tokens: 7 },
  })
const unreported = () =>
  jsonReply({ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'hi' }] })
const failed =
  (tokens: number, status = 503) =>
  () =>
    jsonReply({ error: { message: 'no' }, usage: { prompt_tokens: tokens, completion_tokens: 0 } }, status)
const body = { ...chatBody, model: 'v' }

describe('the amounts of a call', () => {
  it('are the sums over its attempts, each with its own model, provider and price', async () => {
    const gateway = gatewayOf({ a: failed(100) })
    const { exchange, status } = await call(gateway, { body })
    expect(status).toBe(200)
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 110, outputTokens: 7, totalTokens: 117 })
    expect(exchange.facts.llm).toMatchObject({
      costPicodollars: 285,
      cost: 285e-12,
      costStatus: 'exact',
      provider: 'anthropic',
      responseModel: 'claude-b-1',
    })
    expect(gateway.metered.toSorted()).toEqual([
      'cost a openai 200 team',
      'cost b anthropic 85 team',
      'done b anthropic',
      'error a openai status_503',
      'tokens a openai 100 team',
      'tokens b anthropic 17 team',
    ])
  })

  it('include the usage in the error response of the last attempt', async () => {
    const gateway = gatewayOf({
      a: failed(100, 429),
      b: () => jsonReply({ type: 'error', usage: { input_tokens: 3, output_tokens: 1 } }, 529),
    })
    const { exchange, status } = await call(gateway, { body })
    expect(status).toBe(529)
    expect(exchange.facts.usage?.totalTokens).toBe(104)
    expect(exchange.facts.llm?.costPicodollars).toBe(220)
    expect(exchange.log.errorCode).toBe('upstream_error')
  })

  it('include the usage of a response that cannot be translated', async () => {
    const gateway = gatewayOf({
      a: failed(0),
      b: () =>
        jsonReply({ type: 'message', content: 'no list', usage: { input_tokens: 3, output_tokens: 1 } }),
    })
    const { exchange } = await call(gateway, { body })
    expect(exchange.facts.usage?.totalTokens).toBe(4)
  })

  it('have the sum of known prices, and the status of the worst part', async () => {
    const { exchange } = await call(gatewayOf({ a: failed(100) }, false), { body })
    expect(exchange.facts.llm).toMatchObject({ costPicodollars: 200, costStatus: 'missing' })
    const estimated = gatewayOf({ a: failed(100), b: unreported })
    const outcome = await call(estimated, { body })
    expect(outcome.exchange.facts.llm?.costStatus).toBe('estimated')
    expect(outcome.exchange.facts.usage?.estimated).toBe(true)
  })

  it('omit failed attempts without usage', async () => {
    for (const type of ['application/json', 'text/html']) {
      const a = () => ({ status: 500, headers: { 'content-type': type }, body: Buffer.from('<html>') })
      const { exchange } = await call(gatewayOf({ a }), { body })
      expect(exchange.facts.usage?.totalTokens).toBe(17)
    }
  })

  it('do not wait for the error of a failed attempt', async () => {
    let cancelled = false
    const source = {
      start() {},
      resume() {},
      cancel() {
        cancelled = true
      },
    }
    const a = () => ({ status: 500, headers: { 'content-type': 'application/json' }, body: source })
    const { exchange } = await call(gatewayOf({ a }), { body })
    expect(exchange.facts.usage?.totalTokens).toBe(17)
    expect(cancelled).toBe(true)
  })

  it('include a failed attempt and the estimate of a stream that the client leaves', async () => {
    const cancellation = createCancellation()
    const delta =
      'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"12345678"}}\n\n'
    const gateway = gatewayOf({
      a: failed(100),
      b: () =>
        streamReply([
          'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
          delta,
        ]),
    })
    const { exchange } = await call(gateway, { body: { ...body, stream: true }, cancellation })
    cancellation.cancel()
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 109, outputTokens: 2, estimated: true })
    expect(exchange.facts.llm?.costPicodollars).toBe(255)
  })

  it('are known to the labels of metrics', async () => {
    const stream = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } }
    for (const b of [
      message,
      () => streamReply([`event: message_delta\ndata: ${JSON.stringify(stream)}\n\n`]),
    ]) {
      const gateway = gatewayOf({ a: failed(100), b })
      const { reply, exchange } = await open(gateway, { body: { ...body, stream: b !== message } })
      const seen: unknown[] = []
      exchange.metricLabels = () => {
        seen.push(exchange.facts.usage?.outputTokens, exchange.facts.llm?.costStatus)
        return []
      }
      await readAll(reply.body, 10_000, 'internal')
      gateway.llm.llmRequest.onEnd?.(exchange)
      expect(seen).toEqual([7, b === message ? 'exact' : expect.any(String)])
    }
  })

  it('are absent without an attempt', async () => {
    const { exchange } = await open(gatewayOf({ a: failed(1) }), { body: { ...body, model: 'unknown' } })
    expect(exchange.facts.usage).toBeUndefined()
  })

  it('equal those in the metrics for any outcome', async () => {
    const tokens = fc.integer({ min: 0, max: 10_000 })
    const answer = fc.oneof(
      fc.record({ status: fc.constantFrom(200, 429, 500), tokens: fc.option(tokens) }),
      fc.constant({ status: 0, tokens: null }),
    )
    const reply =
      ({ status, tokens: count }: { status: number; tokens: number | null }) =>
      () => {
        const usage = { prompt_tokens: count, input_tokens: count, completion_tokens: 1, output_tokens: 1 }
        const content = count === null ? { ...completion('x', null) } : { ...completion('x'), usage }
        return status === 0 ? jsonReply('not an object') : jsonReply(content, status)
      }
    await fc.assert(
      fc.asyncProperty(answer, answer, async (a, b) => {
        const gateway = gatewayOf({ a: reply(a), b: reply(b) })
        const { exchange } = await call(gateway, { body })
        const metered = (kind: string, at: number) =>
          gateway.metered
            .filter((line) => line.startsWith(kind))
            .reduce((sum, line) => sum + Number(line.split(' ')[at]), 0)
        expect(exchange.facts.usage?.totalTokens ?? 0).toBe(metered('tokens', 3))
        expect(exchange.facts.llm?.costPicodollars ?? 0).toBe(metered('cost', 3))
      }),
    )
  })
})
