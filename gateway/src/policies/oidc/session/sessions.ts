import { buildExact, exactText } from '../../../lib/json/exact.ts'
import { type ExactJsonObject, isExactJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { createLru } from '../../../lib/lru.ts'
import { isUserClaim } from '../claims.ts'
import { maxSessionLength } from './cookies.ts'
import type { Sealing } from './sealing.ts'

/** Content of a session. Times are milliseconds since the epoch. */
export type SessionContent = {
  /** Identity of the login, unchanged during the session. */
  readonly id: string
  /** Number of refreshes. */
  readonly generation: number
  readonly claims: ExactJsonObject
  /** ID token, for the logout at the provider. */
  readonly idToken: string | undefined
  readonly refreshToken: string | undefined
  /** Lifetime of the tokens at the provider; undefined if the session has no refresh token. */
  readonly tokens: { readonly from: number; readonly until: number } | undefined
  /** Absolute end. */
  readonly endsAt: number
}

/** Content as sealed in a cookie. */
export type Session = SessionContent & {
  readonly sealedAt: number
  /** End without a further request. */
  readonly idleUntil: number
}

export type Sessions = {
  /** Seals a session; undefined if it is too large for cookies. */
  seal(content: SessionContent): string | undefined
  /** Opens a session; undefined if it is forged, or has ended. */
  open(text: string): Session | undefined
}

const maxCached = 1_000

/** Creates the sessions of a policy. `idleMs` is their time without a request. */
export function createSessions(sealing: Sealing, idleMs: number, now: () => number): Sessions {
  const opened = createLru<string, Session>(maxCached)

  function read(text: string): Session | undefined {
    const cached = opened.get(text)
    if (cached !== undefined) return cached
    const value = text.length > maxSessionLength ? undefined : sealing.unseal(text)
    const session = value && readSession(value)
    if (session !== undefined) opened.set(text, session)
    return session
  }

  return {
    seal(content) {
      const idleUntil = Math.min(content.endsAt, now() + idleMs)
      const value = writeSession(content, { sealedAt: now(), idleUntil })
      const whole = sealing.seal(value)
      if (whole.length <= maxSessionLength || content.idToken === undefined) return fitting(whole)
      // A logout at the provider works without the ID token, after a confirmation.
      return fitting(
        sealing.seal(writeSession({ ...content, idToken: undefined }, { sealedAt: now(), idleUntil })),
      )
    },
    open(text) {
      const session = read(text)
      if (session === undefined || now() < Math.min(session.idleUntil, session.endsAt)) return session
      opened.delete(text)
      return undefined
    },
  }
}

function fitting(text: string): string | undefined {
  return text.length <= maxSessionLength ? text : undefined
}

function writeSession(
  { id, generation, claims, idToken, refreshToken, tokens, endsAt }: SessionContent,
  { sealedAt, idleUntil }: Pick<Session, 'sealedAt' | 'idleUntil'>,
): JsonObject {
  return {
    i: id,
    g: generation,
    // Claims of the ID token are not stored twice. After a refresh others may have changed since.
    c: exactText(idToken === undefined ? claims : withoutEqual(claims, claimsOf(idToken))),
    ...(idToken === undefined ? {} : { t: idToken }),
    ...(refreshToken === undefined ? {} : { r: refreshToken }),
    ...(tokens === undefined ? {} : { f: tokens.from, u: tokens.until }),
    e: endsAt,
    s: sealedAt,
    d: idleUntil,
  }
}

function readSession(value: JsonObject): Session | undefined {
  const { i: id, g: generation, c, t: idToken, r: refreshToken, f: from, u: until, e: endsAt, s, d } = value
  if (typeof id !== 'string' || typeof generation !== 'number' || typeof c !== 'string') return undefined
  if (typeof endsAt !== 'number' || typeof s !== 'number' || typeof d !== 'number') return undefined
  const own = buildExact(c)
  if (!isExactJsonObject(own)) return undefined
  return {
    id,
    generation,
    claims: typeof idToken === 'string' ? { ...claimsOf(idToken), ...own } : own,
    idToken: typeof idToken === 'string' ? idToken : undefined,
    refreshToken: typeof refreshToken === 'string' ? refreshToken : undefined,
    tokens: typeof from === 'number' && typeof until === 'number' ? { from, until } : undefined,
    endsAt,
    sealedAt: s,
    idleUntil: d,
  }
}

/** Claims of a verified ID token. */
function claimsOf(idToken: string): ExactJsonObject {
  const claims = buildExact(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString())
  if (!isExactJsonObject(claims)) return {}
  return Object.fromEntries(Object.entries(claims).filter(([name]) => isUserClaim(name)))
}

function withoutEqual(claims: ExactJsonObject, known: ExactJsonObject): ExactJsonObject {
  return Object.fromEntries(
    Object.entries(claims).filter(
      ([name, value]) => !Object.hasOwn(known, name) || exactText(value) !== exactText(known[name]),
    ),
  )
}
