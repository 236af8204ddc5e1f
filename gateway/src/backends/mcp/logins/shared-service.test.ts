import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import { linkPeers } from '../../../../test/support/linked-peers.ts'
import type { Peers } from '../../../lib/planes/peers.ts'
import type { LoginService } from './login-service.ts'
import { createLoginHub, type LoginHub } from './shared-service.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

let close: (() => void) | undefined
afterEach(() => close?.())

const serviceOf = (token: string) => (): LoginService => ({
  token: async (user, refused) => ({ kind: 'token', token: `${token} ${user} ${refused}`, expiresAt: 7 }),
  authorize: async (challenge) => ({
    ...{ kind: 'started', address: challenge, origin: { issuer: token, clientId: 'c' } },
  }),
  redeem: async ({ user, code, verifier, origin: { issuer, clientId }, issuer: sent }) => ({
    ...{ kind: 'failed', reason: [user, code, verifier, issuer, clientId, sent].join() },
  }),
})
const never = () => {
  throw new Error('created on another data plane')
}

function hubs(): { first: LoginHub; second: LoginHub; peers: Peers[] } {
  const { peers, close: end } = linkPeers(2)
  close = end
  const [one, two] = peers
  if (one === undefined || two === undefined) throw new Error('no peers')
  return { first: createLoginHub(one), second: createLoginHub(two), peers }
}

describe('login services over data planes', () => {
  it('are those of the first, by name', async () => {
    const { first, second } = hubs()
    const own = first.share('a', serviceOf('a'))
    first.share('b', serviceOf('b'))
    const remote = second.share('a', never)
    for (const service of [own, remote]) {
      expect(await service.token('ada', 'x')).toEqual({ kind: 'token', token: 'a ada x', expiresAt: 7 })
      const origin = { issuer: 'a', clientId: 'c' }
      expect(await service.authorize('s256')).toMatchObject({ kind: 'started', address: 's256', origin })
      const login = { user: 'ada', code: 'k', verifier: 'v', origin, issuer: 'i' }
      expect(await service.redeem(login)).toEqual({ kind: 'failed', reason: 'ada,k,v,a,c,i' })
    }
    expect(await second.share('b', never).token('bob', undefined)).toMatchObject({ token: 'b bob undefined' })
  })

  it('are unavailable without a service of the name', async () => {
    const { second } = hubs()
    const service = second.share('a', never)
    expect(await service.token('ada', undefined)).toEqual({ kind: 'unavailable' })
    expect(await service.authorize('s256')).toEqual({ kind: 'failed', reason: 'the gateway is restarting' })
  })

  it('are collected after their last use', async () => {
    const { first, second, peers } = hubs()
    const shareOnce = () => new WeakRef(first.share('a', serviceOf('a')))
    const shared = shareOnce()
    await turn()
    collectGarbage()
    expect(shared.deref()).toBeUndefined()
    expect(await second.share('a', never).token('ada', undefined)).toEqual({ kind: 'unavailable' })
    const next = first.share('a', serviceOf('next'))
    expect(await second.share('a', never).token('ada', undefined)).toMatchObject({
      token: 'next ada undefined',
    })
    expect([next.hub, peers.length]).toEqual([first, 2])
  })
})
