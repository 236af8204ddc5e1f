import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { createRotationResults } from '../../identity/tokens/rotation-results.ts'
import { createTokenFamilies } from '../../identity/tokens/token-families.ts'
import type { LoginProvider, LoginTokens, ProviderResult } from './provider.ts'
import { compileRefresh, isRefreshResult, type RefreshResult } from './refresh.ts'
import { createSealing } from './session/sealing.ts'
import { createSessions, type Session } from './session/sessions.ts'

const session: Session = {
  id: 'login',
  generation: 0,
  claims: { sub: 'ada' },
  idToken: undefined,
  refreshToken: 'first',
  tokens: { from: 0, until: 300_000 },
  endsAt: 10_000_000,
  sealedAt: 0,
  idleUntil: 3_600_000,
}
const tokens: LoginTokens = { accessToken: 'a', idToken: undefined, refreshToken: 'second', expiresIn: 300 }

function setup(answers: ProviderResult<LoginTokens>[]) {
  const { clock, memory, peers } = fixtureContext()
  const asked: string[] = []
  const provider = {
    async refresh(token: string): Promise<ProviderResult<LoginTokens>> {
      asked.push(token)
      return answers[asked.length - 1] ?? { kind: 'refused', reason: 'unexpected' }
    },
  } as LoginProvider
  const sessions = createSessions(createSealing([randomBytes(32)], 'session', 'p'), 3_600_000, clock.now)
  const families = createTokenFamilies<RefreshResult>(
    {
      ...{ name: 'sessions', capacity: 10, repeatMs: 60_000, isResult: isRefreshResult },
      results: createRotationResults(peers, 'test'),
    },
    memory,
    clock,
  )
  const refresh = compileRefresh({
    ...{ families, sessions, provider, now: clock.now },
    readClaims: async () => ({
      kind: 'found',
      value: { claims: { sub: 'ada', new: true }, idToken: undefined },
    }),
  })
  return { refresh, asked, sessions, families, clock }
}

describe('a refresh', () => {
  it('is sent once for parallel and late requests with the cookie', async () => {
    const { refresh, asked, sessions, clock } = setup([{ kind: 'found', value: tokens }])
    const results = await Promise.all([refresh(session), refresh(session), refresh(session)])
    clock.advance(30_000)
    results.push(await refresh(session))
    expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(1)
    expect(asked).toEqual(['first'])
    const [result] = results
    expect(result?.kind === 'refreshed' && sessions.open(result.text)).toMatchObject({
      generation: 1,
      refreshToken: 'second',
      claims: { new: true },
      endsAt: session.endsAt,
    })
  })

  it('ends the session when an old cookie returns later', async () => {
    const { refresh, families, clock } = setup([{ kind: 'found', value: tokens }])
    await refresh(session)
    clock.advance(61_000)
    expect(await refresh(session)).toEqual({ kind: 'ended', reason: 'was already used' })
    expect(families.isRevoked('login')).toBe(true)
  })

  it('ends the session when the provider refuses', async () => {
    const { refresh } = setup([{ kind: 'refused', reason: 'the provider returned invalid_grant' }])
    expect(await refresh(session)).toEqual({ kind: 'ended', reason: 'the provider returned invalid_grant' })
  })

  it('pauses while the provider is unavailable, and succeeds later with the same token', async () => {
    const away: ProviderResult<LoginTokens> = { kind: 'unavailable', reason: 'away' }
    const { refresh, asked, clock } = setup([away, { kind: 'found', value: tokens }])
    expect([await refresh(session), await refresh(session)]).toEqual([away, away])
    expect(asked).toEqual(['first'])
    clock.advance(5_000)
    expect((await refresh(session)).kind).toBe('refreshed')
    expect(asked).toEqual(['first', 'first'])
  })
})
