import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { createMetrics } from '../../telemetry/metrics/metrics.ts'
import { refuse } from '../errors.ts'
import type { Policy } from '../policy.ts'
import type { HttpListener, Route } from '../snapshot.ts'
import { createConnectionCalls } from './connection-calls.ts'

const authorizationService: Policy = { name: 'external authorization', isOfConnections: true }

/** A rule on claims and on values of a service, which a connection has since its request. */
const rule: Policy = {
  name: 'authorization',
  repeats: 'credential',
  onRequest: (exchange) =>
    exchange.facts.extAuthz?.['user'] === 'ada' && exchange.facts.jwt?.['sub'] === 'ada'
      ? undefined
      : refuse(exchange, { status: 403, code: 'forbidden', message: 'denied' }),
}

function listenerWith(policies: Policy[]): { route: Route; listener: HttpListener } {
  const route: Route = {
    ...{ name: 'llm', traffic: 'llm', policies, meter: createMetrics().route('llm') },
    backend: () => ({ status: 200, headers: {}, body: undefined }),
    errorFormat: () => 'openai',
  }
  const listener: HttpListener = {
    ...{ key: 'k', host: 'h', port: 1, kind: 'http', tls: undefined, clients: undefined },
    match: () => ({ target: route, prefix: '/' }),
  }
  return { route, listener }
}

/** A connection with a login session until 60,000 and values of services. */
function opened(policies: Policy[]) {
  const { clock } = fixtureContext()
  const { route, listener } = listenerWith(policies)
  const exchange = fixtureExchange()
  const state = { latest: listener }
  const calls = createConnectionCalls(
    { exchange, route, listener },
    {
      clock,
      listener: () => state.latest,
      nextRequestId: () => 'id',
      createRecording: () => undefined,
      startTelemetry() {},
      end() {},
    },
  )
  Object.assign(exchange.facts, {
    jwt: { sub: 'ada', exp: 1 },
    extAuthz: { user: 'ada' },
    metadata: { team: 'support' },
  })
  exchange.auth.session = { endsAt: 60_000 }
  return { calls, state, clock }
}

describe('a connection', () => {
  it('has its session and the values of services after a check with a later configuration', async () => {
    const { calls, state } = opened([authorizationService, rule])
    state.latest = listenerWith([authorizationService, rule]).listener
    expect(await calls.recheck(false)).toBeUndefined()
    expect(calls.isOutdated).toBe(false)
    const call = await calls.start(() => {})
    expect(call.exchange.facts).toMatchObject({
      jwt: { sub: 'ada' },
      extAuthz: { user: 'ada' },
      metadata: { team: 'support' },
    })
    expect(await calls.recheck(true)).toBeUndefined()
  })

  it.each<[string, Policy[]]>([
    ['changes', [{ ...authorizationService }, rule]],
    ['is removed', [rule]],
    ['is added', [authorizationService, { ...authorizationService }, rule]],
  ])('is outdated if a check of its request %s, and keeps its facts', async (_, later) => {
    const { calls, state } = opened([authorizationService, rule])
    state.latest = listenerWith(later).listener
    expect(await calls.recheck(false)).toBeUndefined()
    expect(calls.isOutdated).toBe(true)
    expect(calls.current.facts.jwt).toMatchObject({ sub: 'ada' })
  })

  it('is refused after a logout, without a change of the configuration', async () => {
    const { calls } = opened([rule])
    const session = { endsAt: 60_000, isEnded: () => isLoggedOut }
    let isLoggedOut = false
    Object.assign(calls.current.auth, { session })
    expect(await calls.recheck(false)).toBeUndefined()
    isLoggedOut = true
    expect(await calls.recheck(false)).toMatchObject({ status: 401 })
  })

  it('runs all policies of a call that the provider has started', async () => {
    const entered: string[] = []
    const limit = (name: string): Policy => ({
      name,
      repeats: 'call',
      onRequest(exchange) {
        entered.push(name)
        if (name === 'failing') throw new Error('unavailable')
        return refuse(exchange, { status: 429, code: 'rate_limit_exceeded', message: 'no' })
      },
    })
    const { calls } = opened([limit('failing'), limit('limits'), limit('budgets')])
    expect(await calls.start(() => {})).toMatchObject({ kind: 'refused' })
    expect(entered).toEqual(['failing'])
    const committed = await calls.start((exchange) => {
      const operation = { operation: 'realtime', api: 'realtime' } as const
      exchange.llm = { operation, estimate: undefined, message: undefined, isCommitted: true }
    })
    expect(committed.kind).toBe('admitted')
    expect(entered.slice(1)).toEqual(['failing', 'limits', 'budgets'])
  })

  it('is refused after the end of its session', async () => {
    const { calls, clock } = opened([rule])
    clock.advance(60_000)
    expect(await calls.recheck(true)).toMatchObject({ status: 401 })
  })
})
