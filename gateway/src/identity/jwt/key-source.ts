import { GatewayError } from '../../lib/gateway-error.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { fetchDocument } from './fetch-document.ts'
import { type KeySet, parseKeySet } from './key-set.ts'
import { createRefetchLimit } from './refetch-limit.ts'

/** Where the keys that sign tokens come from. Answers undefined as long as there are none. */
export type KeySource = {
  /** The keys to use now. A promise only where there are none yet, or they are far too old. */
  current(): KeySet | undefined | Promise<KeySet | undefined>
  /**
   * The keys after another fetch, because a token names `keyId`, which is not among them. Fetches are limited: a small
   * burst for all key ids together, and one in 30 s for each key id.
   */
  refetch(keyId: string): Promise<KeySet | undefined>
}

/**
 * Address of a key set: fixed, or located before each fetch. `name` identifies it across reloads, `isLearnt` marks an
 * address that is not of the configuration but of a fetched document.
 */
export type JwksUri = { name: string; isDiscovered?: true; resolve(): Promise<string> }

const maxBytes = 256 * 1024
const timeoutMs = 10_000
const defaultFreshMs = 15 * 60_000
const minFreshMs = 60_000
const maxFreshMs = 24 * 3_600_000
/** Keys that were due this long ago are not used while fresh ones may be had: nobody asked for them all that time. */
const maxStaleMs = 5 * 60_000
const firstRetryMs = 1_000
const lastRetryMs = 15_000

/** Keys that are part of the configuration. */
export function createLocalKeySource(set: KeySet): KeySource {
  return { current: () => set, refetch: () => Promise.resolve(set) }
}

export function fixedJwksUri(url: string): JwksUri {
  return { name: url, resolve: () => Promise.resolve(url) }
}

/**
 * Keys at an address. Fetched when first needed, so the gateway starts without the provider; refreshed in the background
 * once they are due; kept while the provider fails, which is asked less and less often then. Without timers: only use
 * makes it look.
 */
export function createRemoteKeySource(address: JwksUri, { send, clock, log }: CompileContext): KeySource {
  let current: { set: KeySet; text: string } | undefined
  let dueAt = Number.NEGATIVE_INFINITY
  let retryAt = Number.NEGATIVE_INFINITY
  const renewals = createRefetchLimit(clock)
  let failures = 0
  let flight: Promise<void> | undefined

  function refresh(): Promise<void> {
    flight ??= fetchKeys().finally(() => {
      flight = undefined
    })
    return flight
  }

  async function fetchKeys(): Promise<void> {
    let url = address.name
    try {
      url = await address.resolve()
      const { status, headers, text } = await fetchDocument(send, { url, maxBytes, timeoutMs })
      if (status !== 200) throw new GatewayError('upstream_invalid', `status ${status}`)
      const set = parseKeySet(text)
      if (set === undefined) throw new GatewayError('upstream_invalid', 'not a JSON Web Key Set')
      if (set.size === 0) throw new GatewayError('upstream_invalid', 'no key in it is usable')
      accept(url, { set, text }, freshMs(headers, clock.now()))
    } catch (error) {
      failures += 1
      const pauseMs = Math.min(lastRetryMs, firstRetryMs * 2 ** (failures - 1))
      retryAt = clock.monotonic() + pauseMs
      log.warn(
        { url, failures, err: error },
        current ? 'keys cannot be refreshed, the last ones stay in use' : 'keys cannot be fetched',
      )
    }
  }

  function accept(url: string, fetched: { set: KeySet; text: string }, lifetimeMs: number) {
    // The same document stays the same object: tokens verified with it need not be verified again.
    if (current?.text !== fetched.text) {
      current = fetched
      log.info({ url, keys: fetched.set.size, skipped: fetched.set.skipped }, 'keys fetched')
    } else if (failures > 0) log.info({ url }, 'keys can be refreshed again')
    failures = 0
    dueAt = clock.monotonic() + lifetimeMs
  }

  return {
    current() {
      const now = clock.monotonic()
      if (now < dueAt) return current?.set
      if (failures === 0 || now >= retryAt) void refresh()
      // Whoever has waited in vain once need not wait again: a provider that hangs must not hold up every request.
      if (current !== undefined && (failures > 0 || now < dueAt + maxStaleMs)) return current.set
      return flight?.then(() => current?.set) ?? current?.set
    },
    async refetch(keyId) {
      if (flight !== undefined) {
        await flight
        return current?.set
      }
      if (failures > 0 && clock.monotonic() < retryAt) return current?.set
      if (!renewals.tryAcquire(keyId)) return current?.set
      await refresh()
      // A fetch that failed proves nothing about the id.
      if (failures === 0) renewals.recordUnknown(keyId)
      return current?.set
    },
  }
}

/** How long an answer may be used, from its own headers (RFC 9111 section 4.2.1) within limits. */
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
  // What is no date, `0` above all, is over already (RFC 9111 section 5.3).
  return expires.endsWith('GMT') ? Date.parse(expires) - now || 0 : 0
}
