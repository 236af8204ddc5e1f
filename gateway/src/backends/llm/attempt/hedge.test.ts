import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  type FixtureProvider,
  fixtureGateway,
  jsonReply,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { LlmConfig } from '../config/config.ts'

const usage = '"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}'
const chunk = (text: string, more = '') =>
  `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]${more}}\n\n`
const streamOf = (text: string) => streamReply([chunk(text, `,${usage}`), 'data: [DONE]\n\n'])

const body = { ...chatBody, model: 'v', stream: true }

function hedged(answers: Record<string, (request: OutgoingRequest) => Reply | Promise<Reply>>, model = {}) {
  const names = Object.keys(answers)
  const config: LlmConfig = {
    models: names.map((name) => ({
      name,
      provider: 'openai',
      params: { baseUrl: `http://${name}` },
      ...model,
    })),
    virtualModels: [
      {
        name: 'v',
        routing: {
          failover: {
            targets: names.map((name, priority) => ({ model: name, priority })),
            hedge: { delay: '5ms' },
          },
        } as never,
      },
    ],
  }
  const provider: FixtureProvider = (request) =>
    answers[request.origin.slice('http://'.length)]?.(request) ?? expect.unreachable()
  const gateway = fixtureGateway(config, provider)
  return { gateway, asked: () => gateway.sent.map(({ origin }) => origin.slice('http://'.length)).join(' ') }
}

/** Responds when the request is cancelled, as an HTTP client does. */
function untilCancelled({ cancellation }: OutgoingRequest): Promise<Reply> {
  return new Promise((_, reject) =>
    cancellation?.onCancel(() => reject(new GatewayError('upstream_reset', 'cancelled'))),
  )
}

describe('a hedged call', () => {
  it('is served by the second target if the first has no content in time, and charged for both', async () => {
    const { gateway, asked } = hedged({ a: untilCancelled, b: () => streamOf('from b') })
    const { text, exchange } = await call(gateway, { body })
    expect([asked(), text.includes('from b')]).toEqual(['a b', true])
    expect(exchange.facts.llm).toMatchObject({ configuredModel: 'b' })
    expect(exchange.log.attempts).toBe(2)
    const prompt = gateway.metered.find((line) => line.startsWith('tokens a openai'))
    // The prompt is estimated, and nothing of the output.
    expect(exchange.facts.usage).toMatchObject({ outputTokens: 3, estimated: true })
    expect(prompt).toBe(`tokens a openai ${(exchange.facts.usage?.inputTokens ?? 0) - 9} team`)
    expect(gateway.metered).toContain('hedged b won')
    expect(gateway.metered.filter((line) => line.startsWith('error'))).toEqual([])
    // A slow target is not a failed one.
    const { asked: again } = { asked }
    await call(gateway, { body })
    expect(again()).toBe('a b a b')
  })

  it('is served by the first target if it is faster in the end', async () => {
    const opened = Promise.withResolvers<Reply>()
    let cancelled = false
    const { gateway, asked } = hedged({
      a: () => opened.promise,
      b(request) {
        request.cancellation?.onCancel(() => {
          cancelled = true
        })
        opened.resolve(streamOf('from a'))
        return untilCancelled(request)
      },
    })
    const { text, exchange } = await call(gateway, { body })
    expect([asked(), text.includes('from a'), cancelled]).toEqual(['a b', true, true])
    expect(exchange.facts.llm).toMatchObject({ configuredModel: 'a' })
    expect(gateway.metered).toContain('hedged b lost')
    expect(gateway.metered.filter((line) => line.startsWith('tokens'))).toHaveLength(2)
  })

  it('is not hedged if the first target is in time, or the call is not streamed', async () => {
    const early = hedged({ a: () => streamOf('from a') })
    await call(early.gateway, { body })
    expect(early.asked()).toBe('a')
    const whole = hedged({
      a: () => new Promise((resolve) => setTimeout(() => resolve(jsonReply({ choices: [] })), 20)),
    })
    await call(whole.gateway, { body: { ...body, stream: false } })
    expect(whole.asked()).toBe('a')
  })

  it('fails over if both targets fail', async () => {
    const { gateway, asked } = hedged({
      a: () => new Promise((resolve) => setTimeout(() => resolve(jsonReply({}, 500)), 20)),
      b: () => jsonReply({}, 500),
      c: () => streamOf('from c'),
    })
    const { text, exchange } = await call(gateway, { body })
    expect([asked(), text.includes('from c')]).toEqual(['a b c', true])
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 12, estimated: false })
    // Without another target, the failure is the response.
    const last = hedged({
      a: () => jsonReply({}, 500),
      b: () => jsonReply({}, 500),
      c: () => jsonReply({}, 503),
    })
    expect((await call(last.gateway, { body })).status).toBe(503)
  })

  it('is answered with the error of a provider if both targets fail and there is no other', async () => {
    const error = { error: { message: 'quota exceeded', type: 'rate_limit_error' } }
    const later = <T>(answer: () => T) => new Promise<T>((resolve) => setTimeout(() => resolve(answer()), 20))
    const { gateway, asked } = hedged({
      a: () => later(() => jsonReply(error, 429, { 'retry-after': '7' })),
      b: async () => {
        await later(() => undefined)
        await later(() => undefined)
        throw new GatewayError('upstream_connect', 'refused')
      },
    })
    const { status, headers, text, exchange } = await call(gateway, { body })
    expect([asked(), status, headers['retry-after'], JSON.parse(text)]).toEqual(['a b', 429, '7', error])
    expect(exchange.facts.llm).toMatchObject({ configuredModel: 'a' })
  })

  it('ends both requests with a disconnect of the client', async () => {
    const cancellation = createCancellation()
    let ended = 0
    const waits = (request: OutgoingRequest) => {
      request.cancellation?.onCancel(() => {
        ended += 1
      })
      return untilCancelled(request)
    }
    const { gateway, asked } = hedged({
      a: waits,
      b(request) {
        setTimeout(cancellation.cancel, 5)
        return waits(request)
      },
    })
    await call(gateway, { body, cancellation })
    expect([asked(), ended]).toEqual(['a b', 2])
  })

  it('occupies slots of both targets until their ends', async () => {
    const { gateway, asked } = hedged(
      { a: untilCancelled, b: () => streamOf('from b'), c: () => streamOf('from c') },
      { concurrency: { max: 1 } },
    )
    for (let request = 0; request < 3; request += 1) {
      await call(gateway, { body })
      await new Promise(setImmediate)
    }
    expect(asked()).toBe('a b a b a b')
  })
})
