import { createCancellation } from '../lib/cancellation.ts'
import { systemClock } from '../lib/clock.ts'
import { createTurns } from '../lib/turns.ts'
import { type Connection, describeConnection, type Endpoints, withoutTls } from '../net/connection.ts'
import { anywhere } from '../net/egress/egress.ts'
import type { Reply } from '../net/send.ts'
import type { CompileContext } from './compile-context.ts'
import type { Exchange, Facts, RequestFacts, Usage } from './exchange.ts'
import type { Policy } from './policy.ts'

/** What tests and benchmarks of policies stand on: an exchange, a compile context and a clock that only they move. */
export type FixtureClock = { now(): number; monotonic(): number; advance(ms: number): void }

function fixtureClock(startMs = 5_000): FixtureClock {
  let timeMs = startMs
  return {
    now: () => timeMs,
    monotonic: () => timeMs,
    advance(ms) {
      timeMs += ms
    },
  }
}

export type FixtureContext = CompileContext & {
  clock: FixtureClock
  /** Decisions of limits, rules and guards by name: `name allowed`, `name refused`, `name request mask`. */
  readonly decisions: Map<string, number>
}

/** A context whose memories last as long as it does. */
export function fixtureContext(): FixtureContext {
  const results = new Map<string, WeakMap<object, unknown>>()
  const states = new Map<string, unknown>()
  const decisions = new Map<string, number>()
  const silent = () => {}
  const unused = () => {
    throw new Error('not part of this fixture')
  }
  return {
    clock: fixtureClock(),
    random: () => 0.5,
    send: unused,
    egress: { of: () => anywhere, document: anywhere },
    grpc: { method: unused, holdOpen: silent, drain: unused, close: silent },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    metrics: {
      route: unused,
      tcp: unused,
      admission: () => ({ changed: silent, refused: silent }),
      llm: unused,
      limit: (name) => ({
        allowed: () => decide(`${name} allowed`),
        refused: () => decide(`${name} refused`),
      }),
      globalLimit: (name) => ({
        checked: (outcome) => decide(`${name} ${outcome}`),
        reported: (outcome) => decide(`${name} report ${outcome}`),
        pending: silent,
      }),
      rule: (name) => ({ refused: () => decide(`${name} refused`) }),
      guard: (name) => ({ checked: (phase, outcome) => decide(`${name} ${phase} ${outcome}`) }),
      configSynchronized: silent,
      configDatabase: silent,
      render: unused,
    },
    decisions,
    readFile: unused,
    spawn: unused,
    parseYaml: unused,
    threads: { run: unused, close: silent },
    turns: createTurns(systemClock),
    memo<T>(node: object, purpose: string, create: () => T): T {
      const byNode = results.get(purpose) ?? new WeakMap<object, unknown>()
      results.set(purpose, byNode)
      if (!byNode.has(node)) byNode.set(node, create())
      return byNode.get(node) as T
    },
    keep<T>(name: string, create: () => T): T {
      if (!states.has(name)) states.set(name, create())
      return states.get(name) as T
    },
  }

  function decide(decision: string) {
    decisions.set(decision, (decisions.get(decision) ?? 0) + 1)
  }
}

/** A connection in the clear from a program on this machine. */
export function fixtureConnection(endpoints: Partial<Endpoints> = {}): Connection {
  const local = { localAddress: '127.0.0.1', localPort: 80 }
  return describeConnection({ remoteAddress: '127.0.0.1', remotePort: 1, ...local, ...endpoints }, withoutTls)
}

/** A chat completion request on its way, with what the test says about it. */
export function fixtureExchange(request: Partial<RequestFacts> = {}, facts: Partial<Facts> = {}): Exchange {
  return {
    facts: {
      request: {
        method: 'POST',
        scheme: 'http',
        host: 'gateway.test',
        path: '/v1/chat/completions',
        query: '',
        version: '1.1',
        headers: {},
        ...request,
      },
      source: { address: '127.0.0.1', port: 40_000 },
      jwt: undefined,
      apiKey: undefined,
      llmRequest: undefined,
      llm: undefined,
      usage: undefined,
      ...facts,
    },
    body: undefined,
    connection: fixtureConnection(),
    trailingSlash: false,
    peer: undefined,
    cancellation: createCancellation(),
    startedAt: 0,
    errorFormat: 'openai',
    routeName: 'llm',
    matchedPrefix: '/',
    forwarding: undefined,
    upgrade: undefined,
    informational: undefined,
    mayUseModel: undefined,
    keyGroup: '',
    limits: undefined,
    refusedBy: undefined,
    failure: undefined,
  }
}

export function fixtureUsage(totalTokens: number): Usage {
  return {
    inputTokens: totalTokens,
    outputTokens: 0,
    totalTokens,
    cachedInputTokens: 0,
    cacheCreationInputTokens: 0,
    reasoningTokens: 0,
    estimated: false,
  }
}

/** Sends an exchange through policies that answer at once, as the pipeline does; the backend answers 200. */
export function throughPolicies(policies: readonly (Policy | undefined)[], exchange: Exchange): Reply {
  const entered: Policy[] = []
  let reply: Reply | undefined
  for (const policy of policies) {
    if (policy === undefined) continue
    entered.push(policy)
    reply = atOnce(policy.onRequest?.(exchange))
    if (reply !== undefined) break
  }
  reply ??= { status: 200, headers: {}, body: undefined }
  for (const policy of entered.toReversed()) reply = atOnce(policy.onReply?.(exchange, reply)) ?? reply
  for (const policy of entered) policy.onEnd?.(exchange)
  return reply
}

/** The text of a reply whose body is at hand. */
export function textOf(reply: Reply): string {
  return reply.body instanceof Uint8Array ? Buffer.from(reply.body).toString() : ''
}

function atOnce<T>(outcome: T | Promise<T>): T {
  if (outcome instanceof Promise) throw new Error('policy answered with a promise')
  return outcome
}
