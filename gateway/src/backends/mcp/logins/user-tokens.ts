import type { Clock } from '../../../lib/clock.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import { createLru } from '../../../lib/lru.ts'
import type { LoginOrigin } from './links.ts'
import type { LoginTokens, TokenOutcome } from './oauth-client.ts'
import type { TokenStore } from './token-store.ts'

/** The token for a call. */
export type UserToken =
  | { readonly kind: 'token'; readonly token: string; readonly expiresAt: number | undefined }
  /** The user must sign in. */
  | { readonly kind: 'none' }
  | { readonly kind: 'unavailable' }

/** Tokens of users, refreshed before they expire. */
export type UserTokens = {
  /** `refused`: the token that the target has refused, which is replaced. */
  token(user: string, refused: string | undefined): Promise<UserToken>
  save(user: string, tokens: LoginTokens): Promise<void>
}

export type UserTokensOptions = {
  readonly store: TokenStore
  refresh(refreshToken: string, origin: LoginOrigin): Promise<TokenOutcome>
  /** Receives reasons of failures, without secrets. */
  report(reason: string): void
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}

/** A token is not used shortly before its end: it must be valid at the target. */
const marginMs = 30_000
const maxUsers = 10_000
/** Pause after a failed refresh. */
const retryMs = 5_000
/** A target that refuses every token must not cause a refresh for each call. */
const renewalMs = 30_000

/** `retryAt`: end of the pause after a failure. `renewedAt`: time of the last refresh. */
type Entry = { tokens: LoginTokens | undefined; retryAt: number; renewedAt: number }

/** Creates the tokens of users. Concurrent calls of a user share one read and one refresh. */
export function createUserTokens({ store, refresh, report, clock }: UserTokensOptions): UserTokens {
  const entries = createLru<string, Entry>(maxUsers)
  const pending = new Map<string, Promise<UserToken>>()

  const isFresh = ({ expiresAt }: LoginTokens) =>
    expiresAt === undefined || clock.now() < expiresAt - marginMs
  const isValid = ({ expiresAt }: LoginTokens) => expiresAt === undefined || clock.now() < expiresAt
  const tokenOf = ({ accessToken, expiresAt }: LoginTokens): UserToken => ({
    kind: 'token',
    token: accessToken,
    expiresAt,
  })

  async function load(user: string): Promise<LoginTokens | undefined> {
    const tokens = readTokens(await store.read(user))
    const renewedAt = entries.get(user)?.renewedAt ?? Number.NEGATIVE_INFINITY
    entries.set(user, { tokens, retryAt: Number.NEGATIVE_INFINITY, renewedAt })
    return tokens
  }

  async function renew(user: string, refused: string | undefined): Promise<UserToken> {
    // Another replica may have refreshed the token.
    const stored = await load(user)
    if (stored === undefined) return { kind: 'none' }
    if (stored.accessToken !== refused && isFresh(stored)) return tokenOf(stored)
    if (stored.refreshToken === undefined) {
      if (stored.accessToken !== refused && isValid(stored)) return tokenOf(stored)
      return forget(user)
    }
    const outcome = await refresh(stored.refreshToken, stored.origin)
    if (outcome.kind === 'tokens') {
      const newer = await replacementOf(user, stored)
      if (newer !== undefined) return tokenOf(newer)
      await save(user, outcome.tokens, clock.monotonic())
      return tokenOf(outcome.tokens)
    }
    report(outcome.reason)
    if (outcome.kind === 'refused') {
      const newer = await replacementOf(user, stored)
      return newer === undefined ? forget(user) : tokenOf(newer)
    }
    // The login remains: the metadata of the target may be wrong for some time.
    if (outcome.kind === 'foreign')
      return stored.accessToken !== refused && isValid(stored) ? tokenOf(stored) : { kind: 'none' }
    const renewedAt = entries.get(user)?.renewedAt ?? Number.NEGATIVE_INFINITY
    entries.set(user, { tokens: stored, retryAt: clock.monotonic() + retryMs, renewedAt })
    return stored.accessToken !== refused && isValid(stored) ? tokenOf(stored) : { kind: 'unavailable' }
  }

  /** Tokens of a login or of another replica that replaced these during a refresh. */
  async function replacementOf(user: string, stored: LoginTokens): Promise<LoginTokens | undefined> {
    const saved = readTokens(await store.read(user))
    const candidates = [entries.get(user)?.tokens, saved]
    return candidates.find(
      (latest) =>
        latest !== undefined &&
        (latest.refreshToken !== stored.refreshToken || latest.accessToken !== stored.accessToken),
    )
  }

  async function forget(user: string): Promise<UserToken> {
    entries.delete(user)
    await store.remove(user)
    return { kind: 'none' }
  }

  async function save(
    user: string,
    tokens: LoginTokens,
    renewedAt = Number.NEGATIVE_INFINITY,
  ): Promise<void> {
    entries.set(user, { tokens, retryAt: Number.NEGATIVE_INFINITY, renewedAt })
    await store.write(user, {
      ...{ issuer: tokens.origin.issuer, clientId: tokens.origin.clientId },
      accessToken: tokens.accessToken,
      refreshToken: tokens.refreshToken ?? null,
      expiresAt: tokens.expiresAt ?? null,
    })
  }

  /** The stored token, if it needs no renewal. */
  function known(user: string, refused: string | undefined): UserToken | undefined {
    const entry = entries.get(user)
    const tokens = entry?.tokens
    if (entry === undefined || tokens === undefined) return undefined
    const now = clock.monotonic()
    if (tokens.accessToken === refused) {
      if (now < entry.renewedAt + renewalMs) return tokenOf(tokens)
      return now < entry.retryAt ? { kind: 'unavailable' } : undefined
    }
    if (isFresh(tokens)) return tokenOf(tokens)
    if (now >= entry.retryAt) return undefined
    return isValid(tokens) ? tokenOf(tokens) : { kind: 'unavailable' }
  }

  async function startRenewal(user: string, refused: string | undefined): Promise<UserToken> {
    const renewal = renew(user, refused).catch((error: unknown): UserToken => {
      report(error instanceof Error ? error.message : 'unknown')
      return { kind: 'unavailable' }
    })
    pending.set(user, renewal)
    try {
      return await renewal
    } finally {
      pending.delete(user)
    }
  }

  return {
    async token(user, refused) {
      const found = known(user, refused)
      if (found !== undefined) return found
      const running = pending.get(user)
      if (running === undefined) return startRenewal(user, refused)
      const joined = await running
      // A renewal for another reason may have returned the refused token.
      if (joined.kind !== 'token' || joined.token !== refused) return joined
      return known(user, refused) ?? pending.get(user) ?? startRenewal(user, refused)
    },
    save: (user, tokens) => save(user, tokens),
  }
}

function readTokens(value: JsonObject | undefined): LoginTokens | undefined {
  if (value === undefined) return undefined
  const { accessToken, refreshToken, expiresAt, issuer, clientId } = value
  if (typeof accessToken !== 'string' || typeof issuer !== 'string' || typeof clientId !== 'string')
    return undefined
  return {
    origin: { issuer, clientId },
    accessToken,
    refreshToken: typeof refreshToken === 'string' ? refreshToken : undefined,
    expiresAt: typeof expiresAt === 'number' ? expiresAt : undefined,
  }
}
