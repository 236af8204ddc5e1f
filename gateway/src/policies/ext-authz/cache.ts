import { hash } from 'node:crypto'
import type { CelProgram } from '../../cel/cel.ts'
import { compileCheckedCel, compileCheckedKey } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseDuration } from '../../lib/duration.ts'
import { createLru } from '../../lib/lru.ts'
import type { CacheConfig } from './config.ts'
import type { Decision } from './decision.ts'
import { editsOfView, type RequestView } from './request-view.ts'

/** Larger decisions are not cached: `maxEntries` bounds the memory. */
const maxDecisionBytes = 16 * 1024
const defaultEntries = 10_000

/** A decision with its origin. */
export type Outcome = {
  readonly decision: Decision
  readonly from: 'service' | 'cache'
}

/** A decision of the service; `isCacheable` is false for those that a cache must not share. */
export type Answer = { readonly decision: Decision; readonly isCacheable: boolean; readonly bytes: number }

/** Cache of decisions. Concurrent requests with the same key share one call. */
export type DecisionCache = {
  /** Returns a cached decision, or that of `ask`. Errors of `ask` are not cached. */
  decide(view: RequestView, ask: () => Promise<Answer>): Outcome | Promise<Outcome>
}

type Entry = { readonly decision: Decision; readonly expiresAt: number }
type Shared = { readonly decision: Decision; readonly isShared: boolean }

/** Compiles the cache. `variables` are the CEL variables of request heads, with `extAuthz`. */
export function compileCache(
  config: CacheConfig,
  variables: ReadonlySet<string>,
  clock: Clock,
): DecisionCache {
  const keys = config.key.map((source) => compileCheckedKey(source, variables))
  const ttlOf = compileTtl(config.ttl, variables, clock)
  const entries = createLru<string, Entry>(config.maxEntries ?? defaultEntries)
  const pending = new Map<string, Promise<Shared>>()

  async function ask(key: string, facts: object, call: () => Promise<Answer>): Promise<Shared> {
    const { decision, isCacheable, bytes } = await call()
    const ttlMs = isCacheable ? ttlOf({ ...facts, extAuthz: decision.metadata }) : 0
    if (ttlMs <= 0) return { decision, isShared: false }
    if (bytes <= maxDecisionBytes) entries.set(key, { decision, expiresAt: clock.monotonic() + ttlMs })
    return { decision, isShared: true }
  }

  return {
    decide(view, call) {
      const { facts } = view
      const key = keyOf(keys, view)
      if (key === undefined) return call().then(fromService)
      const entry = entries.get(key)
      if (entry !== undefined && entry.expiresAt > clock.monotonic())
        return { decision: entry.decision, from: 'cache' }
      const active = pending.get(key)
      if (active !== undefined) {
        return active.then(({ decision, isShared }) =>
          // Without a time to live the decision is for one request.
          isShared ? { decision, from: 'cache' } : call().then(fromService),
        )
      }
      const asked = ask(key, facts, call)
      pending.set(key, asked)
      const release = () => pending.delete(key)
      asked.then(release, release)
      return asked.then(fromService)
    },
  }
}

function fromService({ decision }: { readonly decision: Decision }): Outcome {
  return { decision, from: 'service' }
}

/** A digest, so that the memory has no credentials of clients; undefined without a value of an expression. */
function keyOf(programs: readonly CelProgram[], view: RequestView): string | undefined {
  // Expressions see the client's request, the service the edits of earlier policies, too.
  const parts: unknown[] = [editsOfView(view)]
  for (const program of programs) {
    const part = keyPart(program, view.facts)
    if (part === undefined) return undefined
    parts.push(part)
  }
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

/** Values of different types are different keys. */
function keyPart(program: CelProgram, facts: object): unknown {
  const value = evaluate(program, facts)
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return { number: String(value) }
  if (typeof value === 'bigint') return { number: String(value) }
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('base64') } : undefined
}

/** Compiles the time to live in milliseconds; 0 without a valid one. */
function compileTtl(text: string, variables: ReadonlySet<string>, clock: Clock): (facts: object) => number {
  const constant = parseDuration(text)
  if (constant !== undefined) return () => constant
  const program = compileCheckedCel(text, variables)
  return (facts) => {
    const value = evaluate(program, facts)
    if (typeof value === 'number') return value * 1000 - clock.now()
    if (typeof value === 'bigint') return Number(value) * 1000 - clock.now()
    if (typeof value !== 'string') return 0
    // A duration is the text of its seconds, a timestamp that of RFC 3339.
    const duration = parseDuration(value)
    if (duration !== undefined) return duration
    const time = Date.parse(value)
    return Number.isNaN(time) ? 0 : time - clock.now()
  }
}

function evaluate(program: CelProgram, facts: object): unknown {
  try {
    return program.evaluate(facts)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}
