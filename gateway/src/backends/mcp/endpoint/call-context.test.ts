import { describe, expect, it } from 'vitest'
import { mcpExchange } from '../../../../test/fixtures/mcp.ts'
import type { Facts } from '../../../pipeline/exchange.ts'
import { clientOf, credentialLifetimeMs } from './call-context.ts'

const ownerOf = (facts: Partial<Facts>) => clientOf(mcpExchange('POST', { facts })).owner

describe('the client of a session', () => {
  it('differs for each identity and identity claim', () => {
    const identities: Partial<Facts>[] = [
      {},
      { jwt: { iss: 'i', sub: 'alice' } },
      { jwt: { iss: 'j', sub: 'alice' } },
      { jwt: { sub: 'alice' } },
      { jwt: { iss: 'i', client_id: 'alice' } },
      { jwt: { iss: 'i', azp: 'alice' } },
      { jwt: { iss: 'i', azp: 'alice', sid: 'login 1' } },
      { jwt: { iss: 'i', azp: 'alice', sid: 'login 2' } },
      { jwt: { iss: 'i', sub: 1 } },
      { jwt: { iss: 'i', sub: '1' } },
      { jwt: { iss: 'i', jti: 'a' } },
      { jwt: { iss: 'i', jti: 'b' } },
      { apiKey: { id: 'alice' } },
      { apiKey: { name: 'alice' } },
      { jwt: { iss: 'i', sub: 'alice' }, apiKey: { id: 'k' } },
    ]
    const owners = identities.map(ownerOf)
    expect(new Set(owners).size).toBe(identities.length)
  })

  it('is the same for new tokens of one identity', () => {
    const owner = ownerOf({ jwt: { iss: 'i', sub: 'alice', exp: 1 } })
    expect(ownerOf({ jwt: { iss: 'i', sub: 'alice', sid: 'login 2', exp: 2, client_id: 'app' } })).toBe(owner)
    expect(ownerOf({ jwt: { iss: 'i', sub: '', client_id: 'app' } })).toBe(
      ownerOf({ jwt: { iss: 'i', client_id: 'app' } }),
    )
  })

  it('is counted by its identity, else by the network of its address', () => {
    const counted = (facts: Partial<Facts>) => clientOf(mcpExchange('POST', { facts })).quotaKey
    const at = (address: string) => counted({ source: { address, port: 1 } })
    expect(at('2001:db8::1')).toBe(at('2001:db8::ffff'))
    expect(at('2001:db8::1')).not.toBe(at('2001:db8:0:1::1'))
    expect(at('192.0.2.1')).not.toBe(at('192.0.2.2'))
    const facts = { jwt: { iss: 'i', sub: 'alice' }, source: { address: '192.0.2.1', port: 1 } }
    expect(counted(facts)).toBe(ownerOf(facts))
  })
})

describe('the lifetime of a stream', () => {
  const lifetime = (facts: Partial<Facts>, keyEnd?: number) => {
    const exchange = mcpExchange('GET', { facts })
    exchange.auth.expiresAt = keyEnd
    return credentialLifetimeMs(exchange, 1_000_000)
  }

  it('ends with the key or the token, whichever is first, and after a day at the latest', () => {
    const token = { jwt: { exp: 1_100 } }
    expect(lifetime({})).toBe(86_400_000)
    expect(lifetime({}, 1_030_000)).toBe(30_000)
    expect(lifetime(token)).toBe(160_000)
    expect(lifetime(token, 1_030_000)).toBe(30_000)
    expect(lifetime(token, 1_300_000)).toBe(160_000)
    expect(lifetime({}, 900_000)).toBe(0)
  })
})
