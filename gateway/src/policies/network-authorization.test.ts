import { describe, expect, it } from 'vitest'
import { fixtureConnection, fixtureContext } from '../../test/fixtures/pipeline.ts'
import {
  checkNetworkAuthorization,
  compileNetworkAuthorization,
  type NetworkAuthorizationConfig,
} from './network-authorization.ts'

type Rules = NetworkAuthorizationConfig['rules']

function compile(rules: Rules) {
  const context = fixtureContext()
  const compiled = compileNetworkAuthorization({ rules }, context, ':80')
  const from = (remoteAddress: string) => compiled?.permits(fixtureConnection({ remoteAddress }))
  return { compiled, from, decisions: context.decisions }
}

describe('networkAuthorization', () => {
  it('permits connections that an allow rule permits, and no others', () => {
    const { from, decisions } = compile(['source.address == "192.0.2.1"', { allow: 'source.port == 7' }])
    expect([from('192.0.2.1'), from('192.0.2.2')]).toEqual([true, false])
    expect([...decisions]).toEqual([['network: no allow rule holds refused', 1]])
  })

  it('denies before it allows, and requires every require rule', () => {
    const { from, decisions } = compile([
      { allow: 'true' },
      { deny: 'source.address == "192.0.2.1"' },
      { require: 'destination.port == 80' },
      { require: 'cidr("192.0.2.0/24").containsIP(source.address)' },
    ])
    expect([from('192.0.2.1'), from('192.0.2.2'), from('198.51.100.1')]).toEqual([false, true, false])
    expect([...decisions.keys()]).toEqual(['network: deny rule 2 refused', 'network: require rule 4 refused'])
  })

  it('refuses where a rule reads an absent identity', () => {
    expect(compile([{ deny: 'source.spiffeId == "spiffe://a/b"' }]).from('192.0.2.1')).toBe(false)
    expect(compile([{ require: 'source.tls.identity == "spiffe://a/b"' }]).from('192.0.2.1')).toBe(false)
    expect(compile(['source.identity.namespace == "x"']).from('192.0.2.1')).toBe(false)
  })

  it('is undefined without rules', () => {
    expect(compile([]).compiled).toBeUndefined()
    expect(compileNetworkAuthorization(undefined, fixtureContext(), '')).toBeUndefined()
  })

  it.each([
    ['source.address == "a" || source.port > 1', false],
    ['cidr("10.0.0.0/8").containsIP(source.network)', false],
    ['destination.port == 1', false],
    ['now > timestamp("2020-01-01T00:00:00Z")', false],
    ['source.spiffeId == "a"', true],
    ['source["spiffeId"] == "a"', true],
    ['has(source.tls)', true],
    ['destination.hostname == "a"', true],
    ['[source].exists(s, s.address == "a")', true],
  ])('with %s awaits the handshake: %s', (rule, awaits) => {
    expect(compile([rule]).compiled?.awaitsHandshake).toBe(awaits)
  })

  it('reports rules on requests, and rules without valid syntax', () => {
    const issues: string[] = []
    checkNetworkAuthorization(
      { rules: [{ deny: 'request.path == "/"' }, 'source.', { require: 'source.nonsense == 1' }] },
      (path, message) => issues.push(`${path.join('.')}: ${message}`),
    )
    expect(issues).toHaveLength(3)
    expect(issues[0]).toMatch(/^rules\.0\.deny: .*request/)
    expect(issues[1]).toMatch(/^rules\.1: /)
    expect(issues[2]).toMatch(/^rules\.2\.require: .*source\.nonsense/)
  })
})
