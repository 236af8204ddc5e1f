import { describe, expect, it } from 'vitest'
import {
  call,
  chatBody,
  completion,
  type FixtureProvider,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { createCancellation } from '../../../lib/cancellation.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isSource } from '../../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { createRecording, type Recording } from '../../../pipeline/recording/recording.ts'
import type { LlmConfig } from '../config/config.ts'

const config: LlmConfig = {
  models: ['a', 'b', 'c'].map((name) => ({
    name,
    provider: 'openai',
    params: { baseUrl: `http://${name}` },
  })),
  virtualModels: [
    {
      name: 'v',
      routing: {
        failover: {
          targets: [
            { model: 'c', priority: 2 },
            { model: 'a', priority: 0 },
            { model: 'b', priority: 1 },
          ],
        },
      } as never,
    },
  ],
}

const body = { ...chatBody, model: 'v' }

/** A gateway whose hosts answer as given; each call may take the next of a list. */
function gatewayWith(hosts: Record<string, (request: OutgoingRequest) => Reply | Promise<Reply>>) {
  const provider: FixtureProvider = (request) => {
    const answer = hosts[request.origin.slice('http://'.length)]
    if (!answer) throw new Error(`${request.origin} was not to be asked`)
    return answer(request)
  }
  const gateway = fixtureGateway(config, provider)
  return {
    ...gateway,
    asked: () => gateway.sent.map((request) => request.origin.slice('http://'.length)).join(' '),
  }
}

const role = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
const rest = ['data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', 'data: [DONE]\n\n']

const works = () => jsonReply(completion('hi'))
const fails = (code: 'upstream_connect' | 'upstream_timeout' | 'upstream_reset') => () => {
  throw new GatewayError(code, 'no')
}

describe('failover', () => {
  it.each<[string, () => Reply]>([
    ['a refused connection', fails('upstream_connect')],
    ['a time limit', fails('upstream_timeout')],
    ['a reset', fails('upstream_reset')],
    ['500', () => jsonReply({ error: {} }, 500)],
    ['503 with HTML', () => ({ status: 503, headers: {}, body: Buffer.from('<html>') })],
    ['429', () => jsonReply({ error: {} }, 429)],
    ['an answer that is no JSON', () => jsonReply('<html>')],
  ])('continues with the next priority on %s', async (_, failure) => {
    const gateway = gatewayWith({ a: failure, b: works })
    const { status, exchange } = await call(gateway, { body })
    expect(status).toBe(200)
    expect(gateway.asked()).toBe('a b')
    expect(exchange.facts.llm).toMatchObject({ requestModel: 'v', configuredModel: 'b' })
    expect(exchange.facts.usage).toMatchObject({ totalTokens: 12 })
    expect(gateway.metered.filter((line) => line.startsWith('error a openai'))).toHaveLength(1)
  })

  it('sends each target its model name and the same body', async () => {
    const gateway = gatewayWith({ a: fails('upstream_connect'), b: works })
    await call(gateway, { body })
    expect(gateway.sent.map((request) => JSON.parse(String(request.body)))).toEqual([
      { ...body, model: 'a' },
      { ...body, model: 'b' },
    ])
  })

  it('does not fail over on client errors', async () => {
    const gateway = gatewayWith({ a: () => jsonReply({ error: { message: 'bad' } }, 400) })
    expect((await call(gateway, { body })).status).toBe(400)
    expect(gateway.asked()).toBe('a')
  })

  it('returns the last outcome if all targets fail', async () => {
    const gateway = gatewayWith({
      a: fails('upstream_connect'),
      b: fails('upstream_timeout'),
      c: () => jsonReply({ error: { message: 'busy' } }, 503),
    })
    const { status, text, exchange } = await call(gateway, { body })
    expect([status, JSON.parse(text).error.message]).toEqual([503, 'busy'])
    expect(exchange.facts.usage).toBeUndefined()
    const unreachable = gatewayWith({ a: works, b: works, c: works })
    expect((await call(unreachable, { body })).status).toBe(200)
  })

  it('tries a failed target last for three seconds', async () => {
    let broken = true
    const gateway = gatewayWith({ a: () => (broken ? fails('upstream_connect')() : works()), b: works })
    await call(gateway, { body })
    broken = false
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b b')
    gateway.context.clock.advance(3_001)
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b b a')
  })

  it('continues after a missing credential, which may be that of one user, without an eviction', async () => {
    let missing = true
    const gateway = gatewayWith({
      a: () => {
        if (missing) throw new GatewayError('credential_unavailable', 'no')
        return works()
      },
      b: works,
    })
    await call(gateway, { body })
    missing = false
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b a')
    expect(gateway.metered.filter((line) => line.startsWith('error a openai'))).toEqual([])
  })

  it('evicts a target whose streams fail after their first content', async () => {
    const gateway = gatewayWith({
      a: () => streamReply([role, ...rest.slice(0, 1)]),
      b: () => streamReply([role, ...rest]),
    })
    const stream = { ...body, stream: true }
    const { text } = await call(gateway, { body: stream })
    expect(text).toContain('upstream_reset')
    await call(gateway, { body: stream })
    expect(gateway.asked()).toBe('a b')
  })

  it('does not evict a target for a stream that the client cancels', async () => {
    const gateway = gatewayWith({ a: () => streamReply([role, ...rest]) })
    const stream = { ...body, stream: true }
    const { reply } = await open(gateway, { body: stream })
    if (isSource(reply.body)) reply.body.cancel()
    await call(gateway, { body: stream })
    expect(gateway.asked()).toBe('a a')
  })

  it('applies retry-after as the duration of the eviction', async () => {
    let busy = true
    const gateway = gatewayWith({
      a: () => (busy ? jsonReply({}, 429, { 'retry-after': '20' }) : works()),
      b: works,
    })
    await call(gateway, { body })
    busy = false
    gateway.context.clock.advance(19_000)
    await call(gateway, { body })
    gateway.context.clock.advance(1_001)
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b b a')
  })

  it('tries evicted targets if no other is available', async () => {
    const gateway = gatewayWith({
      a: fails('upstream_connect'),
      b: fails('upstream_connect'),
      c: fails('upstream_connect'),
    })
    expect((await call(gateway, { body })).status).toBe(503)
    expect((await call(gateway, { body })).status).toBe(503)
    expect(gateway.asked()).toBe('a b c a b c')
  })

  it('releases the connection of an unused response', async () => {
    let cancelled = 0
    const failing = (): Reply => ({
      status: 500,
      headers: {},
      body: { start: () => expect.unreachable(), resume() {}, cancel: () => (cancelled += 1) },
    })
    await call(gatewayWith({ a: failing, b: works }), { body })
    expect(cancelled).toBe(1)
  })

  it('stops after a disconnect of the client', async () => {
    const cancellation = createCancellation()
    const gateway = gatewayWith({
      a: () => {
        cancellation.cancel()
        throw new GatewayError('upstream_reset', 'no')
      },
    })
    const { exchange } = await call(gateway, { body, cancellation })
    expect(gateway.asked()).toBe('a')
    expect(exchange.facts.usage).toMatchObject({ estimated: true, outputTokens: 4096 })
  })

  it('does not fail over after the first content of a stream', async () => {
    const content = 'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
    const gateway = gatewayWith({
      a: () => streamReply([content], new GatewayError('upstream_reset', 'cut')),
    })
    const { status, text } = await call(gateway, { body: { ...body, stream: true } })
    expect(status).toBe(200)
    expect(text).toContain('"code":"upstream_reset"')
    expect(gateway.asked()).toBe('a')
  })

  it.each<[string, () => Reply]>([
    ['cut', () => streamReply([role], new GatewayError('upstream_reset', 'cut'))],
    ['ended', () => streamReply([role])],
    ['an error event', () => streamReply([role, 'data: {"error":{"message":"busy"}}\n\n'])],
  ])('replaces a stream that is %s before its first content', async (_, failing) => {
    const gateway = gatewayWith({ a: failing, b: () => streamReply([role, ...rest]) })
    const { status, text, exchange } = await call(gateway, { body: { ...body, stream: true } })
    expect([status, text]).toEqual([200, [role, ...rest].join('')])
    expect(gateway.asked()).toBe('a b')
    expect(exchange.facts.llm).toMatchObject({ configuredModel: 'b' })
    // The next stream is of another target: a stream without content counts as a failure.
    await call(gateway, { body: { ...body, stream: true } })
    expect(gateway.asked()).toBe('a b b')
  })

  it('records the attempts of a request and the targets that it skips', async () => {
    const gateway = gatewayWith({ a: () => jsonReply({}, 500), b: () => streamReply([role]), c: works })
    const first = createRecording('all')
    await call(gateway, { body: { ...body, stream: true }, recording: first })
    const second = createRecording('all')
    await call(gateway, { body, recording: second })
    const attempts = ({ attempts: list = [] }: Recording) =>
      list.map(
        ({ target, sent, failure }) => `${target} ${sent ? (failure ?? 'served') : `skipped: ${failure}`}`,
      )
    expect(attempts(first)).toEqual(['a status_500', 'b upstream_reset', 'c served'])
    expect(attempts(second)).toEqual(['a skipped: evicted', 'b skipped: evicted', 'c served'])
  })

  it('charges usage that a replaced stream has reported', async () => {
    const messages: LlmConfig = {
      ...config,
      models: ['a', 'b', 'c'].map((name) => ({
        name,
        provider: 'anthropic',
        params: { baseUrl: `http://${name}` },
      })),
    }
    const start = (tokens: number) =>
      `event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":${tokens},"output_tokens":0}}}\n\n`
    const overloaded = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
    const end = [
      'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"hi"}}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":2}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ]
    const replies = [streamReply([start(7), overloaded]), streamReply([start(9), ...end])]
    const gateway = fixtureGateway(messages, () => replies.shift() ?? expect.unreachable())
    const sent = { ...body, max_tokens: 10, stream: true }
    const { text, exchange } = await call(gateway, { path: '/v1/messages', body: sent })
    expect(text).toBe([start(9), ...end].join(''))
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 16, outputTokens: 2 })
  })

  it('tries a target without a success since its eviction by one request at a time', async () => {
    const answers: ((reply: Reply) => void)[] = []
    let state: 'fails' | 'waits' | 'works' = 'fails'
    const gateway = gatewayWith({
      a: () => {
        if (state === 'fails') return jsonReply({}, 500)
        return state === 'works' ? works() : new Promise((resolve) => answers.push(resolve))
      },
      b: works,
    })
    await call(gateway, { body })
    gateway.context.clock.advance(3_001)
    state = 'waits'
    const trial = call(gateway, { body })
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b a b')
    await new Promise(setImmediate)
    answers[0]?.(jsonReply({}, 500))
    await trial
    // The second eviction lasts twice as long.
    gateway.context.clock.advance(5_900)
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b a b b b')
    gateway.context.clock.advance(101)
    state = 'works'
    await call(gateway, { body })
    await call(gateway, { body })
    expect(gateway.asked()).toBe('a b a b b b a a')
  })

  it('skips a target without support for the request', async () => {
    const mixed: LlmConfig = {
      models: [
        { name: 'claude', provider: 'anthropic' },
        { name: 'gpt', provider: 'openai' },
      ],
      virtualModels: [
        {
          name: 'v',
          routing: {
            failover: {
              targets: [
                { model: 'claude', priority: 0 },
                { model: 'gpt', priority: 1 },
              ],
            },
          } as never,
        },
      ],
    }
    const gateway = fixtureGateway(mixed, works)
    expect((await call(gateway, { body: { ...body, n: 2 } })).status).toBe(200)
    expect(gateway.sent.map((request) => request.origin)).toEqual(['https://api.openai.com'])
  })

  it('distributes the load within a priority', async () => {
    const twins: LlmConfig = {
      models: config.models,
      virtualModels: [
        {
          name: 'v',
          routing: {
            failover: {
              targets: [
                { model: 'a', priority: 1 },
                { model: 'b', priority: 1 },
              ],
            },
          } as never,
        },
      ],
    }
    const ranks = [0.1, 0.9, 0.9, 0.1]
    const gateway = fixtureGateway(twins, works, { random: () => ranks.shift() ?? 0 })
    await call(gateway, { body })
    await call(gateway, { body })
    expect(gateway.sent.map((request) => request.origin)).toEqual(['http://a', 'http://b'])
  })
})

describe('a single model', () => {
  it.each([
    ['upstream_connect', 503],
    ['upstream_timeout', 504],
    ['upstream_reset', 502],
  ] as const)('that fails with %s answers %i in the shape of the API', async (code, expected) => {
    const gateway = gatewayWith({ a: fails(code) })
    const { status, text, exchange } = await call(gateway, { body: { ...chatBody, model: 'a' } })
    expect(status).toBe(expected)
    expect(JSON.parse(text).error).toMatchObject({ code, type: 'server_error' })
    expect(exchange.facts.usage).toBeUndefined()
    expect(gateway.metered).toContain(`error a openai ${code}`)
  })
})
