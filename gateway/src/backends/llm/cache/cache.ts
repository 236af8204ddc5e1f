import { hash } from 'node:crypto'
import type { CelProgram } from '../../../cel/cel.ts'
import { compileCheckedKey } from '../../../cel/checked.ts'
import { parseDuration } from '../../../lib/duration.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { CacheMeter } from '../../../telemetry/metrics/llm.ts'
import { cacheLimits, keyVariables, type ResponseCacheConfig } from './config.ts'
import type { RowScope } from './database/sealed-response.ts'
import { createSharedResponses, type SharedResponses } from './database/shared-responses.ts'
import { createResponseStore, type ResponseStore } from './store.ts'

/** The compiled cache of a target. */
export type ResponseCache = {
  readonly store: ResponseStore
  /** Responses in the database; undefined with `store: memory`. */
  readonly shared: SharedResponses | undefined
  /** Identity of the target in the database. */
  readonly scope: RowScope
  readonly meter: CacheMeter
  readonly ttlMs: number
  readonly maxEntryBytes: number
  /** Value that requests share responses by; undefined for the identity of the client. */
  readonly key: CelProgram | undefined
  /** Names of further headers in the key, in lower case and sorted. */
  readonly headers: readonly string[]
  /** Digest of the configuration of the target: after a change, earlier responses are not returned. */
  readonly fingerprint: string
}

export type CacheOptions = {
  /** Identity of the target, for its memory. */
  readonly place: string
  /** Name of the model in metrics. */
  readonly model: string
  /** The configuration that responses depend on. */
  readonly settings: unknown
}

/** Compiles `cache` of a target. Responses outlive reloads while limits and place are unchanged. */
export function compileResponseCache(
  config: ResponseCacheConfig,
  { place, model, settings }: CacheOptions,
  context: CompileContext,
): ResponseCache {
  const { maxEntryBytes, maxBytes, maxEntries } = cacheLimits(config)
  const meter = context.metrics.llmCache(model)
  return {
    store: context.retained(`llm/cache/${place}/${maxBytes}/${maxEntries}`, () =>
      createResponseStore({ maxBytes, maxEntries }, meter.store()),
    ),
    shared: config.store === 'database' ? sharedResponses(context) : undefined,
    scope: { place, secret: context.sessionKey },
    meter,
    ttlMs: parseDuration(config.ttl) ?? 0,
    maxEntryBytes,
    key: config.key === undefined ? undefined : compileCheckedKey(config.key, keyVariables),
    headers: [...new Set(config.headers?.map((name) => name.toLowerCase()))].toSorted(),
    fingerprint: hash('sha256', JSON.stringify(settings), 'base64url'),
  }
}

function sharedResponses({ retained, cachedRows: rows, clock, metrics }: CompileContext): SharedResponses {
  return retained('llm/cache/database', () =>
    createSharedResponses({ rows, clock, meter: metrics.databaseCache() }),
  )
}
