import { describe, expect, it } from 'vitest'
import type { LoginTokens, TokenOutcome } from './oauth-client.ts'
import { createTokenStore } from './token-store.ts'
import { createUserTokens } from './user-tokens.ts'

const tokens = (
  accessToken: string,
  expiresAt?: number,
  refreshToken = `refresh-${accessToken}`,
): LoginTokens => ({
  ...{ accessToken, refreshToken, expiresAt, origin: { issuer: 'https://auth.test', clientId: 'c' } },
})

function world(duringRefresh?: () => Promise<void>) {
  const time = { now: 0 }
  const refreshed: string[] = []
  const reasons: string[] = []
  const outcomes: TokenOutcome[] = []
  const store = createTokenStore(undefined, new Uint8Array(32))
  const users = createUserTokens({
    store,
    async refresh(refreshToken) {
      refreshed.push(refreshToken)
      await duringRefresh?.()
      return outcomes.shift() ?? { kind: 'unavailable', reason: 'down' }
    },
    report: (reason) => void reasons.push(reason),
    clock: { now: () => time.now, monotonic: () => time.now },
  })
  return { time, refreshed, reasons, outcomes, store, users }
}

describe('the token of a user', () => {
  it('is absent before the login, and separate for each user', async () => {
    const { users } = world()
    await users.save('ada', tokens('a'))
    expect(await users.token('bob', undefined)).toEqual({ kind: 'none' })
    expect(await users.token('ada', undefined)).toMatchObject({ kind: 'token', token: 'a' })
  })

  it('is refreshed once for concurrent calls before it expires', async () => {
    const { users, time, outcomes, refreshed } = world()
    await users.save('ada', tokens('a', 100_000))
    time.now = 80_000
    outcomes.push({ kind: 'tokens', tokens: tokens('b', 200_000) })
    const found = await Promise.all([1, 2, 3].map(() => users.token('ada', undefined)))
    expect(found.map((one) => one.kind === 'token' && one.token)).toEqual(['b', 'b', 'b'])
    expect(refreshed).toEqual(['refresh-a'])
  })

  it('is replaced after the target refused it, and only then', async () => {
    const { users, outcomes, refreshed } = world()
    await users.save('ada', tokens('a'))
    outcomes.push({ kind: 'tokens', tokens: tokens('b') })
    expect(await users.token('ada', 'a')).toMatchObject({ token: 'b' })
    expect(await users.token('ada', 'a')).toMatchObject({ token: 'b' })
    expect(refreshed).toHaveLength(1)
  })

  it('is not refreshed for each call if the target refuses every token', async () => {
    const { users, time, outcomes, refreshed } = world()
    await users.save('ada', tokens('a'))
    outcomes.push({ kind: 'tokens', tokens: tokens('b') }, { kind: 'tokens', tokens: tokens('c') })
    expect(await users.token('ada', 'a')).toMatchObject({ token: 'b' })
    for (let call = 0; call < 3; call += 1)
      expect(await users.token('ada', 'b')).toMatchObject({ token: 'b' })
    expect(refreshed).toHaveLength(1)
    time.now = 30_000
    expect(await users.token('ada', 'b')).toMatchObject({ token: 'c' })
    time.now = 60_000
    for (let call = 0; call < 3; call += 1)
      expect(await users.token('ada', 'c')).toEqual({ kind: 'unavailable' })
    expect(refreshed).toHaveLength(3)
  })

  it('is not a refused one of another call', async () => {
    const { users, store, outcomes } = world()
    await store.write('ada', {
      ...{ accessToken: 'a', refreshToken: 'refresh-a', issuer: 'https://auth.test', clientId: 'c' },
    })
    outcomes.push({ kind: 'tokens', tokens: tokens('b') })
    const found = await Promise.all([users.token('ada', undefined), users.token('ada', 'a')])
    expect(found).toMatchObject([{ token: 'a' }, { token: 'b' }])
  })

  it('is removed with a refused refresh token', async () => {
    const { users, store, outcomes, reasons } = world()
    await users.save('ada', tokens('a'))
    outcomes.push({ kind: 'refused', reason: 'invalid_grant' })
    expect(await users.token('ada', 'a')).toEqual({ kind: 'none' })
    expect(await store.read('ada')).toBeUndefined()
    expect(reasons).toEqual(['invalid_grant'])
  })

  it('is used until its end while the server fails, which is asked after a pause', async () => {
    const { users, time, refreshed } = world()
    await users.save('ada', tokens('a', 100_000))
    time.now = 80_000
    expect(await users.token('ada', undefined)).toMatchObject({ token: 'a' })
    expect(await users.token('ada', undefined)).toMatchObject({ token: 'a' })
    expect(refreshed).toHaveLength(1)
    time.now = 100_001
    expect(await users.token('ada', undefined)).toEqual({ kind: 'unavailable' })
    expect(refreshed).toHaveLength(2)
  })

  it('is that of another replica, which refreshed it before', async () => {
    const { users, store, refreshed } = world()
    await users.save('ada', tokens('a'))
    await store.write('ada', {
      ...{ accessToken: 'c', refreshToken: 'refresh-c', issuer: 'https://auth.test', clientId: 'c' },
    })
    expect(await users.token('ada', 'a')).toMatchObject({ token: 'c' })
    expect(refreshed).toEqual([])
  })

  it('is that of a login during a refresh', async () => {
    const { users, store, time, outcomes } = world(() => users.save('ada', tokens('other account')))
    await users.save('ada', tokens('a', 10_000))
    time.now = 20_000
    outcomes.push({ kind: 'tokens', tokens: tokens('b') })
    expect(await users.token('ada', undefined)).toMatchObject({ token: 'other account' })
    expect(await users.token('ada', undefined)).toMatchObject({ token: 'other account' })
    expect(await store.read('ada')).toMatchObject({ accessToken: 'other account' })
  })
})
