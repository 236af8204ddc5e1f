import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { systemClock } from '../../../lib/clock.ts'
import { createLocalMemory } from '../../../lib/planes/memory.ts'
import { createSinglePlane } from '../../../lib/planes/peers.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { LoginConfig } from './config.ts'
import { compileLogin, loginPolicy, nameOf } from './logins.ts'

const identity = { iss: 'https://users.test', sub: 'u1' }

it.each([
  [{ ...identity, email: 'ada@a.test' }, 'u1, https://users.test'],
  [{ ...identity, email: 'ada@a.test', email_verified: true }, 'ada@a.test, u1, https://users.test'],
  [{ ...identity, preferred_username: 'ada', email: 'x@a.test' }, 'ada, u1, https://users.test'],
  [{}, 'without a name'],
])('the name of a user with the claims %j is %s', (jwt, name) => {
  expect(nameOf(fixtureExchange({}, { jwt }))).toBe(name)
})

const config: LoginConfig = { publicUrl: 'https://gateway.test/mcp' }

/** Compiles logins in turn, as reloads do. */
function reloads() {
  const states = new Map<string, object>()
  const policy = { key: '' }
  const context = {
    ...{ clock: systemClock, processKey: new Uint8Array(32), peers: createSinglePlane() },
    memory: createLocalMemory(),
    log: { info() {}, warn() {} },
    send: () => Promise.reject(new Error('not reachable')),
    egress: {
      document: { key: 'document', refuses: () => undefined },
      of: () => ({ key: policy.key, refuses: () => undefined }),
    },
    retained(name: string, create: () => object) {
      const state = states.get(name) ?? create()
      states.set(name, state)
      return state
    },
  } as unknown as CompileContext
  const login = (name: string, change: Partial<LoginConfig> = {}) => {
    const address = { origin: 'https://tools.test', path: '/mcp' } as Parameters<
      typeof compileLogin
    >[1]['address']
    return compileLogin({ ...config, ...change }, { name, address, node: {} }, context)
  }
  const compile = (name: string, change: Partial<LoginConfig> = {}) => login(name, change).service
  const tokenStores = () => [...states.keys()].filter((name) => name.startsWith('mcp logins: tokens'))
  return { compile, login, context, policy, tokenStores }
}

describe('a login after a reload', () => {
  it('continues with the same settings', () => {
    const { compile } = reloads()
    expect(compile('a')).toBe(compile('a'))
  })

  it('has a new service under another name or egress policy, with the same tokens', () => {
    const { compile, policy, tokenStores } = reloads()
    const services = [compile('a'), compile('b')]
    policy.key = 'no private addresses'
    services.push(compile('a'))
    expect(new Set(services).size).toBe(3)
    expect(tokenStores()).toHaveLength(1)
  })

  it('has a new service and new tokens for another client', () => {
    const { compile, tokenStores } = reloads()
    const client = { clientId: 'c', issuer: 'https://auth.test' }
    const services = [compile('a'), compile('a', client), compile('a', { ...client, clientSecret: 's' })]
    expect(new Set(services).size).toBe(3)
    expect(tokenStores()).toHaveLength(2)
  })
})

describe('the pages of logins', () => {
  it('are those of the host, and of all its targets', async () => {
    const { login, context } = reloads()
    const policy = loginPolicy(
      [
        { login: login('a') },
        { login: login('b', { publicUrl: 'https://gateway.test/mcp/' }) },
        { login: login('c', { publicUrl: 'https://other.test/mcp' }) },
      ],
      context,
    )
    const titleAt = async (host: string, target: string) => {
      const { links } = login(target, { publicUrl: `https://${host}/mcp` })
      const link = links.sealLink({ user: { key: 'k', name: 'Ada' }, target })
      const path = '/mcp/oauth/start'
      const exchange = fixtureExchange({ path, host, headers: { origin: `https://${host}` } })
      exchange.body = Buffer.from(new URLSearchParams({ link }).toString())
      const reply = await policy?.onRequest?.(exchange)
      // 502: the authorization server is not reachable. 400: the target is unknown here.
      return reply?.status
    }
    expect(await titleAt('gateway.test', 'a')).toBe(502)
    expect(await titleAt('gateway.test', 'b')).toBe(502)
    expect(await titleAt('other.test', 'c')).toBe(502)
    expect(await titleAt('other.test', 'a')).toBe(400)
    expect(await policy?.onRequest?.(fixtureExchange({ path: '/mcp' }))).toBeUndefined()
  })
})
