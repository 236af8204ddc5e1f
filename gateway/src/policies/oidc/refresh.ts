import type { TokenFamilies } from '../../identity/tokens/token-families.ts'
import type { ReadUserClaims } from './claims.ts'
import { lifetimeOf } from './login.ts'
import type { LoginProvider } from './provider.ts'
import type { Session, Sessions } from './session/sessions.ts'

/** Result of a refresh, plain data for other data planes. */
export type RefreshResult =
  /** Text of the new session. */
  | { kind: 'refreshed'; text: string }
  /** The provider has ended the session. */
  | { kind: 'ended'; reason: string }
  | { kind: 'unavailable'; reason: string }

export type RefreshOptions = {
  /** Refreshes by session, each once over all data planes. */
  families: TokenFamilies<RefreshResult>
  sessions: Sessions
  provider: LoginProvider
  readClaims: ReadUserClaims
  now(): number
}

/** Time without a further attempt after the provider was unavailable. */
const pauseMs = 5_000

/** Compiles the refresh of a session: of parallel requests one sends the refresh token. */
export function compileRefresh({ families, sessions, provider, readClaims, now }: RefreshOptions) {
  let paused: { until: number; result: RefreshResult } | undefined

  async function refresh(session: Session, refreshToken: string): Promise<RefreshResult> {
    const tokens = await provider.refresh(refreshToken)
    if (tokens.kind !== 'found') return failed(tokens)
    const { sub } = session.claims
    const user = await readClaims(tokens.value, { ...session, subject: typeof sub === 'string' ? sub : '' })
    if (user.kind !== 'found') return failed(user)
    const text = sessions.seal({
      ...session,
      ...user.value,
      generation: session.generation + 1,
      refreshToken: tokens.value.refreshToken ?? refreshToken,
      tokens: lifetimeOf(tokens.value, now()),
    })
    return text === undefined
      ? { kind: 'ended', reason: 'the claims are too large' }
      : { kind: 'refreshed', text }
  }

  return async (session: Session): Promise<RefreshResult> => {
    const { id, generation, refreshToken } = session
    if (refreshToken === undefined) return { kind: 'ended', reason: 'no refresh token' }
    if (paused !== undefined && now() < paused.until) return paused.result
    const rotation = await families.rotate({ family: id, generation }, async () => {
      const result = await refresh(session, refreshToken)
      return { result, isUsed: result.kind !== 'unavailable' }
    })
    if (rotation.kind === 'refused') return { kind: 'ended', reason: rotation.reason }
    if (rotation.result.kind === 'unavailable') paused = { until: now() + pauseMs, result: rotation.result }
    return rotation.result
  }
}

function failed({ kind, reason }: { kind: 'refused' | 'unavailable'; reason: string }): RefreshResult {
  return kind === 'refused' ? { kind: 'ended', reason } : { kind, reason }
}

/** Whether a value is a result, such as the copy of one of another data plane. */
export function isRefreshResult(value: unknown): value is RefreshResult {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false
  if (value.kind === 'refreshed') return 'text' in value && typeof value.text === 'string'
  const isFailure = value.kind === 'ended' || value.kind === 'unavailable'
  return isFailure && 'reason' in value && typeof value.reason === 'string'
}
