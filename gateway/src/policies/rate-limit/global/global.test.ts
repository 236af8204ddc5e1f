import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, fixtureUsage, textOf } from '../../../../test/fixtures/pipeline.ts'
import { type GrpcCall, GrpcError } from '../../../net/grpc-client.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import { compileLocalRateLimit } from '../local.ts'
import type { GlobalRateLimitConfig } from './config.ts'
import { compileGlobalRateLimit } from './global.ts'
import { encodeRequest } from './wire.ts'

/** Yes, with a status of nothing left. */
function usedUp(code: number): Uint8Array {
  const limit = new BinaryWriter().uint32(8).uint32(100).uint32(16).int32(3).finish()
  const status = new BinaryWriter().uint32(8).int32(code).uint32(18).bytes(limit).finish()
  return new BinaryWriter().uint32(8).int32(code).uint32(18).bytes(status).finish()
}

const ok = new BinaryWriter().uint32(8).int32(1).finish()
const over = new BinaryWriter().uint32(8).int32(2).finish()

type Answers = (message: Uint8Array, deadlineMs: number) => Uint8Array | Promise<Uint8Array>

function service(answers: Answers = () => ok) {
  const asked: string[] = []
  const methods: string[] = []
  const method = (_target: unknown, path: string): GrpcCall => {
    return async (message, { deadlineMs }) => {
      asked.push(Buffer.from(message).toString('hex'))
      methods.push(path.slice(path.lastIndexOf('/') + 1))
      return answers(message, deadlineMs)
    }
  }
  const context = {
    ...fixtureContext(),
    grpc: { ...fixtureContext().grpc, method, trackPending() {}, drain: async () => {}, close() {} },
  }
  return { asked, methods, context }
}

type Descriptors = GlobalRateLimitConfig['descriptors']

function config(descriptors: Descriptors, more: { failureMode?: 'failOpen' } = {}): GlobalRateLimitConfig {
  return { host: 'limiter:8081', domain: 'd', descriptors, ...more }
}

const byUser = { entries: [{ key: 'user', value: 'apiKey.user' }] }

/** What the request for a user looks like. */
function question(user: string, hits: number, total = hits): string {
  const descriptor = { entries: [['user', user]], limit: undefined } as const
  return Buffer.from(encodeRequest('d', [{ descriptor, hits }], total)).toString('hex')
}

function policiesOf(
  context: ReturnType<typeof service>['context'],
  global: GlobalRateLimitConfig,
  hasTokens = true,
): Policy[] {
  const { beforeBody, afterBody } = compileGlobalRateLimit(global, context, { scope: 'llm', hasTokens })
  return [beforeBody, afterBody].filter((policy) => policy !== undefined)
}

async function send(policies: readonly Policy[], exchange: Exchange): Promise<Reply> {
  let reply: Reply | undefined
  const entered: Policy[] = []
  for (const policy of policies) {
    entered.push(policy)
    reply = await policy.onRequest?.(exchange)
    if (reply) break
  }
  reply ??= { status: 200, headers: {}, body: undefined }
  for (const policy of entered.toReversed()) reply = (await policy.onReply?.(exchange, reply)) ?? reply
  for (const policy of entered) policy.onEnd?.(exchange)
  return reply
}

function from(user: string | undefined, more: Parameters<typeof fixtureExchange>[1] = {}, method = 'POST') {
  return fixtureExchange({ method }, { apiKey: user === undefined ? undefined : { user }, ...more })
}

describe('requests', () => {
  it('are asked for once, and count one', async () => {
    const { asked, context } = service()
    expect((await send(policiesOf(context, config([byUser])), from('ada'))).status).toBe(200)
    expect(asked).toEqual([question('ada', 1)])
    expect(context.decisions.get('llm: global d allowed')).toBe(1)
  })

  it('that count for nothing are not asked for', async () => {
    const { asked, context } = service(() => over)
    const policies = policiesOf(context, config([byUser]))
    expect((await send(policies, from(undefined))).status).toBe(200)
    expect((await send(policies, from(''))).status).toBe(200)
    expect(asked).toEqual([])
  })

  it('cost the value of the expression, or one without a value', async () => {
    const { asked, context } = service()
    const policies = policiesOf(context, config([{ ...byUser, cost: 'apiKey.cost' }]))
    await send(policies, from('ada', { apiKey: { user: 'ada', cost: 7 } }))
    await send(policies, from('ada', { apiKey: { user: 'ada', cost: -7 } }))
    await send(policies, from('ada', { apiKey: { user: 'ada', cost: 'much' } }))
    await send(policies, from('ada'))
    expect(asked).toEqual([question('ada', 7), ...Array(3).fill(question('ada', 1))])
  })

  it.each(['9007199254740993', '9007199254740993.0', '1.0 / 0.0'])(
    'cost the most there is for %s',
    async (cost) => {
      const { asked, context } = service()
      await send(policiesOf(context, config([{ ...byUser, cost }])), from('ada'))
      expect(asked).toEqual([question('ada', 2 ** 32 - 1)])
    },
  )

  it('carry a limit when the expression returns one', async () => {
    const { asked, context } = service()
    const limitOverride = '{"unit": "minute", "requestsPerUnit": apiKey.limit}'
    const policies = policiesOf(context, config([{ ...byUser, limitOverride }]))
    await send(policies, from('ada', { apiKey: { user: 'ada', limit: 5 } }))
    await send(policies, from('ada', { apiKey: { user: 'ada', limit: 'none' } }))
    const limit = { requestsPerUnit: 5, unit: 'minute' } as const
    const hit = { descriptor: { entries: [['user', 'ada']], limit }, hits: 1 } as const
    expect(asked).toEqual([Buffer.from(encodeRequest('d', [hit], 1)).toString('hex'), question('ada', 1)])
  })

  it('send long values as their hash', async () => {
    const { asked, context } = service()
    await send(policiesOf(context, config([byUser])), from('a'.repeat(100_000)))
    expect(Buffer.from(asked[0] ?? '', 'hex').toString()).toMatch(/sha256:[0-9a-f]{64}/)
    expect(asked[0]?.length).toBeLessThan(300)
  })

  it('do not send a value that looks like a hash as the long value that has it', async () => {
    const { asked, context } = service()
    const policies = policiesOf(context, config([byUser]))
    await send(policies, from('a'.repeat(100_000)))
    const [hashed = ''] = /sha256:[0-9a-f]{64}/.exec(Buffer.from(asked[0] ?? '', 'hex').toString()) ?? []
    await send(policies, from(hashed))
    expect(asked[1]).not.toBe(asked[0])
  })

  it('release reservations of local limits when the service refuses or fails', async () => {
    let answers: Answers = () => over
    const { context } = service((message) => answers(message, 0))
    const local = compileLocalRateLimit([{ requests: 1, unit: 'Hours' }], context, { scope: 'llm' })
    const policies = [local.beforeBody, ...policiesOf(context, config([byUser]))].filter(
      (policy) => policy !== undefined,
    )
    expect((await send(policies, from('ada'))).status).toBe(429)
    answers = () => Promise.reject(new Error('gone'))
    const failed = await send(policies, from('ada'))
    expect([failed.status, textOf(failed), failed.headers]).toEqual([
      500,
      'rate limit failed',
      { 'content-type': 'text/plain' },
    ])
    answers = () => ok
    expect((await send(policies, from('ada'))).status).toBe(200)
    expect((await send(policies, from('ada'))).status).toBe(429)
  })
})

describe('tokens', () => {
  const tokens = [{ ...byUser, type: 'tokens' as const }]

  it('are checked with 0 and reported with the usage', async () => {
    const { asked, context } = service()
    await send(policiesOf(context, config(tokens)), from('ada', { usage: fixtureUsage(42) }))
    expect(asked).toEqual([question('ada', 0), question('ada', 42)])
  })

  it('are reported by descriptor, each in a call of its own', async () => {
    const { asked, context } = service()
    const twice = { ...byUser, type: 'tokens' as const, cost: 'llm.inputTokens * 2' }
    await send(policiesOf(context, config([...tokens, twice])), from('ada', { usage: fixtureUsage(42) }))
    expect(asked.slice(1)).toEqual([question('ada', 42), question('ada', 84)])
  })

  it('are refused when the budget is used up to the last one, if the service confirms it', async () => {
    const none = usedUp(1)
    for (const [confirmed, status] of [
      [over, 429],
      // A service that only watches the limit.
      [none, 200],
    ] as const) {
      const { asked, context } = service((message) =>
        Buffer.from(message).toString('hex') === question('ada', 0) ? none : confirmed,
      )
      expect((await send(policiesOf(context, config(tokens)), from('ada'))).status).toBe(status)
      expect(asked).toEqual([question('ada', 0), question('ada', 1)])
    }
  })

  it('are checked and reported with methods of their own under protocol kuadrant', async () => {
    const { asked, methods, context } = service()
    const global = { ...config([byUser, ...tokens, ...tokens]), protocol: 'kuadrant' as const }
    await send(policiesOf(context, global), from('ada', { usage: fixtureUsage(9) }))
    expect(methods).toEqual(['ShouldRateLimit', 'CheckRateLimit', 'CheckRateLimit', 'Report', 'Report'])
    expect(asked.slice(1)).toEqual([0, 0, 9, 9].map((hits) => question('ada', hits)))
  })

  it('are not reported where none were used, nor for requests the service refused', async () => {
    const { asked, context } = service()
    await send(policiesOf(context, config(tokens)), from('ada'))
    expect(asked).toEqual([question('ada', 0)])
    const refusing = service(() => over)
    const refused = await send(
      policiesOf(refusing.context, config(tokens)),
      from('ada', { usage: fixtureUsage(42) }),
    )
    expect([refused.status, refusing.asked.length]).toEqual([429, 1])
  })

  it('are reported though the question failed, where failures let through', async () => {
    let calls = 0
    const { asked, context } = service(() => {
      calls += 1
      if (calls === 1) throw new Error('gone')
      return ok
    })
    const policies = policiesOf(context, config(tokens, { failureMode: 'failOpen' }))
    expect((await send(policies, from('ada', { usage: fixtureUsage(9) }))).status).toBe(200)
    expect(asked).toEqual([question('ada', 0), question('ada', 9)])
  })

  it('cost the value of the expression over the counts, or the total if it fails', async () => {
    const { asked, context } = service()
    const cost = 'llm.inputTokens * 2'
    const policies = policiesOf(context, config([{ ...byUser, type: 'tokens', cost }]))
    await send(policies, from('ada', { usage: fixtureUsage(21) }))
    expect(asked[1]).toBe(question('ada', 42))
    const failing = policiesOf(context, config([{ ...byUser, type: 'tokens', cost: 'llm.totalTokens / 0' }]))
    await send(failing, from('ada', { usage: fixtureUsage(21) }))
    expect(asked[3]).toBe(question('ada', 21))
  })

  it('cost dollars in the unit of the expression', async () => {
    const { asked, context } = service()
    const cost = 'llm.cost * 1000000.0'
    const policies = policiesOf(context, config([{ ...byUser, type: 'tokens', cost }]))
    const llm = {
      ...({ operation: 'chat', api: 'chat_completions' } as const),
      ...{ requestModel: 'm', configuredModel: 'm', provider: 'openai', streaming: false, cost: 0.0012341 },
    }
    await send(policies, from('ada', { llm, usage: fixtureUsage(21) }))
    expect(asked[1]).toBe(question('ada', 1235))
  })

  it('mean nothing for reads, and where there are none', async () => {
    const { asked, context } = service(() => over)
    expect((await send(policiesOf(context, config(tokens)), from('ada', {}, 'GET'))).status).toBe(200)
    expect(policiesOf(context, config(tokens), false)).toEqual([])
    expect(asked).toEqual([])
  })
})

describe('a service without answers', () => {
  it('costs a request one timeout, however many checks it needs', async () => {
    const deadlines: number[] = []
    const { context } = service((_, deadlineMs) => {
      deadlines.push(deadlineMs)
      context.clock.advance(deadlineMs)
      throw new GrpcError(4, 'deadline exceeded')
    })
    const startedAt = context.clock.monotonic()
    const global = config([byUser, { ...byUser, type: 'tokens' }], { failureMode: 'failOpen' })
    const policies = policiesOf(context, global)
    expect((await send(policies, from('ada'))).status).toBe(200)
    expect(deadlines).toEqual([500])
    for (let request = 0; request < 10; request++) await send(policies, from('ada'))
    expect(deadlines).toHaveLength(5)
    expect(context.clock.monotonic() - startedAt).toBe(2_500)
    expect(context.decisions.get('llm: global d failed_open')).toBe(22)
  })
})

describe('headers', () => {
  const status = (remaining: number) =>
    new BinaryWriter()
      .uint32(8)
      .int32(1)
      .uint32(18)
      .fork()
      .uint32(8)
      .int32(1)
      .uint32(18)
      .fork()
      .uint32(8)
      .uint32(100)
      .uint32(16)
      .int32(3)
      .join()
      .uint32(24)
      .uint32(remaining)
      .join()
      .finish()

  it.each([
    [3, ['100', '3', '3600']],
    [50, ['10', '9', '60']],
  ])('show the closest limit, wherever it is counted (%i left at the service)', async (left, expected) => {
    const { context } = service(() => status(left))
    const local = compileLocalRateLimit([{ requests: 10, unit: 'Minutes' }], context, { scope: 'llm' })
    const policies = [local.beforeBody, ...policiesOf(context, config([byUser]))].filter(
      (policy) => policy !== undefined,
    )
    const { headers } = await send(policies, from('ada'))
    expect(['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`])).toEqual(expected)
  })
})
