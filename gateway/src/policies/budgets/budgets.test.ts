import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange, fixtureUsage } from '../../../test/fixtures/pipeline.ts'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { SecretText } from '../../cel/secret-text.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { CallEstimate, Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { KeyBudget } from '../../schema/budget.ts'
import { applyBudgetReport, budgetAccounts } from './accounts.ts'
import { compileBudgets } from './budgets.ts'
import type { BudgetConfig } from './config.ts'

const startedAt = Date.parse('2026-11-22T10:00:00Z')
const team: BudgetConfig = { name: 'team', limit: { tokens: 1_000 }, window: '1h' }
const dollar = 1e12

type World = {
  context: CompileContext & { decisions: Map<string, number> }
  policy: Policy
  time: { now: number }
  warnings: unknown[]
}

function worldOf(budgets: BudgetConfig[], changes: Partial<CompileContext> = {}): World {
  const time = { now: startedAt }
  const warnings: unknown[] = []
  const context = {
    ...fixtureContext(),
    clock: { now: () => time.now, monotonic: () => time.now, advance: () => undefined },
    ...changes,
  }
  const log = {
    ...context.log,
    warn: (fields: object, message: string) => warnings.push({ ...fields, message }),
  }
  const policy = compileBudgets([{ scope: 'llm', budgets }], { ...context, log })
  return { context, policy, time, warnings }
}

type RequestOptions = { group?: string; model?: string; estimate?: CallEstimate; keyBudgets?: KeyBudget[] }

function requestOf({ group, model = 'gpt-5', estimate, keyBudgets }: RequestOptions = {}): Exchange {
  const operation = { operation: 'chat', api: 'chat_completions' } as const
  const exchange = fixtureExchange()
  exchange.facts.apiKey = group === undefined ? undefined : { id: 'k1', group }
  exchange.facts.llm = {
    ...{ ...operation, requestModel: model, configuredModel: model, provider: 'openai', streaming: false },
  }
  exchange.llm = {
    operation,
    estimate: () => estimate ?? { tokens: 10, picodollars: dollar / 100 },
    message: undefined,
  }
  if (keyBudgets) exchange.auth.budgets = [{ keyId: 'k1', budgets: keyBudgets }]
  return exchange
}

function admit({ policy }: World, exchange: Exchange): Reply | undefined {
  const reply = policy.onRequest?.(exchange)
  if (reply instanceof Promise) throw new Error('a synchronous decision expected')
  return reply
}

function end({ policy }: World, exchange: Exchange, tokens: number, picodollars?: number): Exchange {
  if (tokens > 0) exchange.facts.usage = fixtureUsage(tokens)
  if (exchange.facts.llm) {
    exchange.facts.llm.costPicodollars = picodollars
    exchange.facts.llm.costStatus = picodollars === undefined ? 'missing' : 'exact'
  }
  policy.onEnd?.(exchange)
  return exchange
}

/** Completes a request. Undefined if it was refused. */
function call(world: World, tokens: number, options: RequestOptions = {}): Exchange | undefined {
  const exchange = requestOf(options)
  return admit(world, exchange) === undefined ? end(world, exchange, tokens) : undefined
}

function textOf(reply: Reply | undefined): string {
  return Buffer.from((reply?.body as Buffer | undefined) ?? '').toString()
}

describe('budgets', () => {
  it('charge the usage of a request and refuse those above the limit', () => {
    const world = worldOf([team])
    const exchange = call(world, 1_000)
    expect(exchange?.charges).toEqual([
      {
        budget: 'llm/team/tokens',
        value: '',
        windowStart: startedAt,
        windowEnd: startedAt + 3_600_000,
        amount: 1_000,
      },
    ])
    world.time.now += 600_000
    const refused = requestOf()
    const reply = admit(world, refused)
    expect(reply?.status).toBe(429)
    expect(reply?.headers).toMatchObject({ 'retry-after': '3000', 'x-should-retry': 'false' })
    expect(JSON.parse(textOf(reply))).toEqual({
      error: {
        message: 'budget "team" of 1000 tokens is exhausted: it resets at 2026-11-22T11:00:00.000Z',
        type: 'rate_limit_error',
        param: null,
        code: 'budget_exceeded',
      },
    })
    expect(refused.log.refusedBy).toBe('budget: llm: team')
    expect(end(world, refused, 0).charges).toBeUndefined()
    expect(world.context.decisions).toEqual(
      new Map([
        ['llm: team allowed', 1],
        ['llm: team refused', 1],
      ]),
    )
  })

  it('refuse in the shape of the Anthropic API', () => {
    const world = worldOf([team])
    call(world, 1_000)
    const exchange = requestOf()
    exchange.errorFormat = 'anthropic'
    expect(JSON.parse(textOf(admit(world, exchange)))).toMatchObject({
      type: 'error',
      error: { type: 'rate_limit_error' },
    })
  })

  it('are available again in the next window', () => {
    const world = worldOf([team])
    call(world, 1_000)
    world.time.now += 3_600_000
    expect(call(world, 5)).toBeDefined()
  })

  it('let clients retry if the window ends within a minute', () => {
    const world = worldOf([team])
    call(world, 1_000)
    world.time.now += 3_540_000
    const reply = admit(world, requestOf())
    expect(reply?.headers).toMatchObject({ 'retry-after': '60' })
    expect(reply?.headers).not.toHaveProperty('x-should-retry')
  })

  it('reserve the estimate of requests in progress', () => {
    const world = worldOf([team])
    const estimate = { tokens: 400, picodollars: undefined }
    const inProgress = [1, 2, 3].map(() => requestOf({ estimate }))
    for (const exchange of inProgress) expect(admit(world, exchange)).toBeUndefined()
    const reply = admit(world, requestOf({ estimate }))
    expect([reply?.status, reply?.headers['retry-after']]).toEqual([429, '1'])
    expect(textOf(reply)).toContain('is reserved by requests in progress')
    for (const exchange of inProgress) end(world, exchange, 100)
    expect(call(world, 1)).toBeDefined()
  })

  it('release the reservation of a request without a call', () => {
    const world = worldOf([team])
    const estimate = { tokens: 1_000, picodollars: undefined }
    for (let count = 0; count < 3; count += 1) expect(call(world, 0, { estimate })?.charges).toBeUndefined()
    expect(budgetAccounts(world.context).read(1)).toMatchObject({ used: 0, reserved: 0 })
  })

  it('reserve in none if one of them refuses', () => {
    const world = worldOf([
      { ...team, name: 'large', limit: { tokens: 1_000_000 } },
      { ...team, name: 'small', limit: { tokens: 1 } },
    ])
    call(world, 1)
    const exchange = requestOf()
    expect(admit(world, exchange)?.status).toBe(429)
    expect(exchange.budgets?.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['large', 'admitted'],
      ['small', 'refused'],
    ])
    const accounts = budgetAccounts(world.context)
    expect([...accounts.positions()].map((position) => accounts.read(position)?.reserved)).toEqual([0, 0])
    expect(end(world, exchange, 0).charges).toBeUndefined()
  })

  it('count each value of the key separately', () => {
    const world = worldOf([{ ...team, key: 'apiKey.group' }])
    call(world, 1_000, { group: 'a' })
    expect(call(world, 1, { group: 'a' })).toBeUndefined()
    expect(call(world, 1, { group: 'b' })?.charges?.[0]?.value).toBe('b')
    expect(call(world, 1)?.charges?.[0]?.value).toBe('')
  })

  it.each(['apiKey.key', 'apiKey.key.unredacted()'])('store values of %s as different hashes', (key) => {
    const world = worldOf([{ ...team, key }])
    const storedFor = (secret: string) => {
      const exchange = requestOf({ group: 'a' })
      exchange.facts.key = new SecretText(secret)
      admit(world, exchange)
      return end(world, exchange, 5).charges?.[0]?.value
    }
    expect(storedFor('key-1')).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(storedFor('key-2')).not.toBe(storedFor('key-1'))
  })

  it.each(['authorization', 'api_key', 'x-password'])('store values of the header %s as hashes', (name) => {
    const world = worldOf([{ ...team, key: `request.headers["${name}"]` }])
    const exchange = requestOf()
    exchange.facts.request.headers[name] = 'Bearer secret'
    admit(world, exchange)
    expect(end(world, exchange, 5).charges?.[0]?.value).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  it('apply to the requests of their condition, and if it fails', () => {
    const world = worldOf([{ ...team, limit: { tokens: 1 }, when: 'llm.requestModel == "gpt-5"' }])
    call(world, 1)
    expect(call(world, 1, { model: 'small' })).toBeDefined()
    expect(call(world, 1)).toBeUndefined()
    const broken = worldOf([{ ...team, limit: { tokens: 1 }, when: 'jwt.team == "a"' }])
    call(broken, 1)
    expect(call(broken, 1)).toBeUndefined()
  })

  it('only report with the action audit', () => {
    const world = worldOf([{ ...team, action: 'audit' }])
    call(world, 2_000)
    const exchange = requestOf()
    expect(admit(world, exchange)).toBeUndefined()
    const reply = world.policy.onReply?.(exchange, { status: 200, headers: {}, body: undefined })
    expect(reply).toMatchObject({ headers: { 'x-budget-warning': '"team";used=2;reset=3600' } })
    expect(end(world, exchange, 5).charges?.[0]?.amount).toBe(5)
    expect(world.context.decisions.get('llm: team audited')).toBe(1)
  })

  it('warn from the configured fraction, with one log line per window and value', () => {
    const world = worldOf([{ ...team, warnAt: 0.8, key: 'apiKey.group' }])
    call(world, 800, { group: 'a' })
    call(world, 10, { group: 'a' })
    call(world, 10, { group: 'b' })
    const exchange = requestOf({ group: 'a' })
    admit(world, exchange)
    expect(world.policy.onReply?.(exchange, { status: 200, headers: {}, body: undefined })).toMatchObject({
      headers: { 'x-budget-warning': '"team";used=0.81;reset=3600' },
    })
    const line = { budget: 'llm: team', value: 'a', resetsAt: '2026-11-22T11:00:00.000Z', warnAt: 0.8 }
    expect(world.warnings).toEqual([{ ...line, message: 'budget warning level reached' }])
    world.time.now += 3_600_000
    call(world, 900, { group: 'a' })
    expect(world.warnings).toHaveLength(2)
  })

  it('charge US dollars exactly', () => {
    const world = worldOf([{ ...team, limit: { usd: '0.000000003' } }])
    const estimate = { tokens: 1, picodollars: 0 }
    for (const [picodollars, isAdmitted] of [
      [1_001, true],
      [1_999, true],
      [1, false],
    ] as const) {
      const exchange = requestOf({ estimate })
      expect(admit(world, exchange) === undefined).toBe(isAdmitted)
      if (isAdmitted) expect(end(world, exchange, 7, picodollars).charges?.[0]?.amount).toBe(picodollars)
    }
  })

  it('count calls without a price, and warn once for each model', () => {
    const world = worldOf([{ ...team, limit: { usd: 1 } }])
    for (let count = 0; count < 2; count += 1) expect(call(world, 100)?.charges).toBeUndefined()
    expect(world.context.decisions.get('llm: team unpriced')).toBe(2)
    expect(world.warnings).toEqual([
      { model: 'gpt-5', message: 'call without a price not charged to budgets in US dollars' },
    ])
  })

  it('charge the priced attempts of a call, and count those without a price', () => {
    const world = worldOf([{ ...team, limit: { usd: 1 } }])
    const exchange = requestOf()
    admit(world, exchange)
    exchange.facts.usage = fixtureUsage(10)
    Object.assign(exchange.facts.llm ?? {}, { costPicodollars: 5, costStatus: 'missing' })
    world.policy.onEnd?.(exchange)
    expect(exchange.charges?.[0]?.amount).toBe(5)
    expect(world.context.decisions.get('llm: team unpriced')).toBe(1)
  })

  it('apply the budgets of the virtual key', () => {
    const world = worldOf([])
    const keyBudgets: KeyBudget[] = [
      { name: 'daily', limit: { unit: 'Tokens', amount: 50 }, window: { rolling: '24h' } },
    ]
    expect(call(world, 50, { keyBudgets })?.charges?.[0]).toMatchObject({
      budget: 'key/k1/daily/tokens',
      value: '',
      amount: 50,
    })
    const refused = requestOf({ keyBudgets })
    expect(admit(world, refused)?.status).toBe(429)
    expect(refused.log.refusedBy).toBe('budget: key: daily')
  })

  it('charge calls that the provider has started, also above the limit', () => {
    const world = worldOf([{ ...team, limit: { tokens: 5 } }])
    expect(call(world, 5)).toBeDefined()
    expect(call(world, 1)).toBeUndefined()
    const exchange = requestOf()
    if (exchange.llm) exchange.llm.isCommitted = true
    expect(admit(world, exchange)).toBeUndefined()
    expect(end(world, exchange, 7).charges).toMatchObject([{ amount: 7 }])
  })

  it('do not apply to model lists and token counts', () => {
    const world = worldOf([{ ...team, limit: { tokens: 1 } }])
    call(world, 1)
    const exchange = requestOf()
    const operation = { operation: 'count_tokens', api: 'count_tokens' } as const
    exchange.llm = { operation, estimate: undefined, message: undefined }
    expect(admit(world, exchange)).toBeUndefined()
  })
})

describe('budgets with a database', () => {
  const windowStart = startedAt
  const use = { budget: 'llm/team/tokens', value: '', windowStart, windowEnd: startedAt + 3_600_000 }

  it('add the use of other processes', () => {
    const world = worldOf([team])
    const accounts = budgetAccounts(world.context)
    accounts.expectReports()
    applyBudgetReport(accounts, { number: 1, uses: [{ ...use, others: 999 }] }, world.context.clock)
    expect(call(world, 1)).toBeDefined()
    expect(call(world, 1)).toBeUndefined()
  })

  it('ignore reports that arrive late', () => {
    const world = worldOf([team])
    const accounts = budgetAccounts(world.context)
    applyBudgetReport(accounts, { number: 2, uses: [{ ...use, others: 1_000 }] }, world.context.clock)
    applyBudgetReport(accounts, { number: 1, uses: [{ ...use, others: 0 }] }, world.context.clock)
    expect(call(world, 1)).toBeUndefined()
  })

  it.each([
    ['failOpen', true],
    ['failClosed', false],
  ] as const)('decide by %s without current totals', (failureMode, isAdmitted) => {
    const world = worldOf([{ ...team, failureMode }])
    const accounts = budgetAccounts(world.context)
    expect(call(world, 1)).toBeDefined()
    accounts.expectReports()
    expect(call(world, 1) !== undefined).toBe(isAdmitted)
    world.time.now += 1
    applyBudgetReport(accounts, { number: 1, uses: [] }, world.context.clock)
    expect(call(world, 1)).toBeDefined()
    world.time.now += 5_001
    const exchange = requestOf()
    expect(admit(world, exchange)?.status).toBe(isAdmitted ? undefined : 503)
    expect(exchange.log.refusedBy).toBe(isAdmitted ? undefined : 'budget: llm: team unavailable')
  })

  it('hold for all data planes', () => {
    const planes = createPlaneMemories(2).map((memory) => worldOf([team], { memory }))
    const [one, other] = planes
    if (one === undefined || other === undefined) throw new Error('two data planes expected')
    const estimate = { tokens: 1_000, picodollars: undefined }
    const exchange = requestOf({ estimate })
    expect(admit(one, exchange)).toBeUndefined()
    expect(admit(other, requestOf())?.status).toBe(429)
    end(one, exchange, 10)
    expect(call(other, 1)).toBeDefined()
  })
})
