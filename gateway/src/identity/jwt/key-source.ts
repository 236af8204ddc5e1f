import { GatewayError } from '../../lib/gateway-error.ts'
import { messageOf } from '../../lib/thrown.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { fetchDocument } from './fetch-document.ts'
import { type KeySet, parseKeySet } from './key-set.ts'
import { createRefetchLimit } from './refetch-limit.ts'
import { createSharedDocument, type DocumentFetch } from './shared-document.ts'

/** Source of the keys that verify tokens. Returns undefined while no keys are available. */
export type KeySource = {
  /** Current keys. A promise only if no keys are available yet, or if they are too old. */
  current(): KeySet | undefined | Promise<KeySet | undefined>
  /**
   * Fetches the keys again for a token with the unknown key id `keyId`. Fetches are limited: a small burst
   * for all key ids together, and one per 30 s for each key id.
   */
  refetch(keyId: string): Promise<KeySet | undefined>
}

/**
 * URL of a key set, fixed or resolved before each fetch. `name` identifies it across reloads; `isDiscovered`
 * marks a URL from a fetched document instead of the configuration.
 */
export type JwksUri = { name: string; isDiscovered?: true; resolve(): Promise<string> }

const maxBytes = 256 * 1024
const timeoutMs = 10_000
const defaultFreshMs = 15 * 60_000
const minFreshMs = 60_000
const maxFreshMs = 24 * 3_600_000
/** Keys that expired longer ago are not used while a fetch may succeed. */
const maxStaleMs = 5 * 60_000
const firstRetryMs = 1_000
const lastRetryMs = 15_000

/** Creates a source of keys from the configuration. */
export function createLocalKeySource(set: KeySet): KeySource {
  return { current: () => set, refetch: () => Promise.resolve(set) }
}

export function fixedJwksUri(url: string): JwksUri {
  return { name: url, resolve: () => Promise.resolve(url) }
}

/**
 * Creates a source of keys at a URL. The first use fetches them, so the gateway starts without the provider;
 * expired keys are refreshed in the background, and stay in use while the provider fails, with backoff. No
 * timers: only use triggers fetches. The data planes of the process share the source of a `name`: each fetch
 * and each limit applies to all of them.
 */
export function createRemoteKeySource(
  name: string,
  address: JwksUri,
  { send, clock, log, memory, metrics: { conditions } }: CompileContext,
): KeySource {
  // A byte of malformed UTF-8 becomes three.
  const document = createSharedDocument(name, 3 * maxBytes, memory)
  const renewals = createRefetchLimit(name, memory, clock)
  let parsed: { version: number; set: KeySet | undefined } = { version: 0, set: undefined }

  function latestSet(): KeySet | undefined {
    const { text, version } = document.latest()
    // An unchanged document retains its object, so that verified tokens stay cached.
    if (version !== parsed.version) parsed = { version, set: parseKeySet(text ?? '') }
    return parsed.set
  }

  async function fetchKeys(): Promise<DocumentFetch> {
    let url = address.name
    try {
      url = await address.resolve()
      const { status, headers, text } = await fetchDocument(send, { url, maxBytes, timeoutMs })
      if (status !== 200) throw new GatewayError('upstream_invalid', `status ${status}`)
      const set = parseKeySet(text)
      if (set === undefined) throw new GatewayError('upstream_invalid', 'not a JSON Web Key Set')
      if (set.size === 0) throw new GatewayError('upstream_invalid', 'key set without a usable key')
      const before = document.latest()
      if (before.text !== text) log.info({ url, keys: set.size, skipped: set.skipped }, 'key set fetched')
      else if (before.failures > 0) log.info({ url }, 'key set refresh recovered')
      return { kind: 'fetched', text, dueAt: clock.monotonic() + freshMs(headers, clock.now()) }
    } catch (error) {
      const before = document.latest()
      const failures = before.failures + 1
      const isPresent = () => document.latest().failures > 0
      conditions.report({ kind: 'identity', subject: url, message: messageOf(error), isPresent })
      log.warn(
        { url, failures, err: error },
        before.text !== undefined
          ? 'key set refresh failed, previous keys remain in use'
          : 'key set fetch failed',
      )
      const pauseMs = Math.min(lastRetryMs, firstRetryMs * 2 ** before.failures)
      return { kind: 'failed', retryAt: clock.monotonic() + pauseMs }
    }
  }

  return {
    current() {
      const state = document.latest()
      const set = latestSet()
      const now = clock.monotonic()
      if (now < state.dueAt) return set
      const isPaused = state.failures > 0 && now < state.retryAt
      const update = isPaused ? undefined : document.update({ since: state, fetch: fetchKeys })
      // After one failure requests no longer wait: a provider that hangs must not delay every request.
      if (set !== undefined && (state.failures > 0 || now < state.dueAt + maxStaleMs)) return set
      return update?.then(latestSet) ?? set
    },
    async refetch(keyId) {
      const state = document.latest()
      if (state.failures > 0 && clock.monotonic() < state.retryAt) return latestSet()
      await document.update({
        since: state,
        isPermitted: () => renewals.tryAcquire(keyId),
        async fetch() {
          const result = await fetchKeys()
          // A failed fetch does not prove that the id is unknown.
          if (result.kind === 'fetched') renewals.recordUnknown(keyId)
          return result
        },
      })
      return latestSet()
    },
  }
}

/** Freshness lifetime of a response (RFC 9111 section 4.2.1), within limits. */
function freshMs(headers: Headers, now: number): number {
  return Math.min(maxFreshMs, Math.max(minFreshMs, freshMsOfHeaders(headers, now) ?? defaultFreshMs))
}

function freshMsOfHeaders(headers: Headers, now: number): number | undefined {
  const control = firstHeader(headers, 'cache-control') ?? ''
  if (/\bno-(?:store|cache)\b/i.test(control)) return 0
  const maxAge = /\bmax-age="?(\d{1,10})\b/i.exec(control)?.[1]
  if (maxAge !== undefined) return Number(maxAge) * 1000
  const expires = firstHeader(headers, 'expires')
  if (expires === undefined) return undefined
  // Invalid dates, `0` in particular, mean already expired (RFC 9111 section 5.3).
  return expires.endsWith('GMT') ? Date.parse(expires) - now || 0 : 0
}
