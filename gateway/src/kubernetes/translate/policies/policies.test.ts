import { describe, expect, it } from 'vitest'
import { createPolicyWorld, type PolicyWorld, place, policy } from '../../../../test/support/policy-world.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import type { Effective, PolicyPlace } from './policies.ts'

function effective(world: PolicyWorld, at: Partial<PolicyPlace> = {}): Effective {
  return world.index.policiesOf(place(at))
}

function conditionsOf(statuses: readonly ObjectStatus[], name: string) {
  const status = statuses.find(({ key }) => key === `default/${name}`)
  if (status?.of !== 'policy') throw new Error(`no status of ${name}`)
  return status.status.ancestors.map(({ ancestorRef, conditions }) => ({
    ancestor: `${ancestorRef.kind}/${ancestorRef.name}`,
    ...Object.fromEntries(conditions.map(({ type, status: value, reason }) => [type, `${value} ${reason}`])),
  }))
}

const requests = (count: number) => ({ rateLimit: { local: [{ requests: count, unit: 'Minutes' }] } })

describe('policies of a place', () => {
  it('are undefined without policies', () => {
    expect(effective(createPolicyWorld([]))).toEqual({ policies: undefined, backends: [] })
  })

  it('contain the limits of all levels, with one identity for each policy, target and entry', () => {
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], traffic: requests(1) }),
      policy('b', { targets: ['Gateway/g/http'], traffic: requests(2) }),
      policy('c', { targets: ['HTTPRoute/r'], traffic: requests(3), uid: 'u-1' }),
      policy('d', { targets: ['HTTPRoute/r/first'], traffic: requests(4) }),
    ])
    expect(effective(world).policies?.localRateLimit).toEqual([
      { requests: 1, unit: 'Minutes', id: 'default/a/Gateway/default/g/0' },
      { requests: 2, unit: 'Minutes', id: 'default/b/Gateway/default/g/http/0' },
      { requests: 3, unit: 'Minutes', id: 'u-1/HTTPRoute/default/r/0' },
      { requests: 4, unit: 'Minutes', id: 'default/d/HTTPRoute/default/r/first/0' },
    ])
    expect(effective(world, { listener: 'other', rule: undefined }).policies?.localRateLimit).toHaveLength(2)
  })

  it('contain limits with the same identity on routes of every kind', () => {
    const local = [
      { tokens: 5, unit: 'Hours' },
      { requests: 7, unit: 'Minutes' },
    ]
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], traffic: { rateLimit: { local } } }),
    ])
    const ids = (traffic: PolicyPlace['traffic']) =>
      effective(world, { traffic }).policies?.localRateLimit?.map(({ id }) => id)
    expect(ids('llm')).toEqual(['default/a/Gateway/default/g/0', 'default/a/Gateway/default/g/1'])
    expect(ids('http')).toEqual(['default/a/Gateway/default/g/1'])
  })

  it('are the same object for the same levels', () => {
    const world = createPolicyWorld([policy('a', { targets: ['Gateway/g'], traffic: requests(1) })])
    const other = { kind: 'HTTPRoute', key: 'default/other' } as const
    expect(effective(world, { route: other })).toBe(effective(world))
    const before = effective(world)
    expect(effective(world.again())).toBe(before)
  })

  it('contain token limits and guards on LLM routes only', () => {
    const guards = { ai: { promptGuard: { request: [{ regex: { rules: [{ builtin: 'Email' }] } }] } } }
    const local = [{ tokens: 5, unit: 'Hours' }]
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], traffic: { rateLimit: { local } }, backend: guards }),
    ])
    expect(effective(world).policies).toBeUndefined()
    expect(effective(world, { traffic: 'mcp' }).policies).toBeUndefined()
    expect(effective(world, { traffic: 'llm' }).policies).toEqual({
      ai: { promptGuard: { request: [{ regex: { rules: [{ builtin: 'email' }] } }] } },
      localRateLimit: [{ tokens: 5, unit: 'Hours', id: 'default/a/Gateway/default/g/0' }],
    })
  })

  it('deny if a policy has an invalid expression', () => {
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], traffic: { authorization: { matchExpressions: ['jwt.'] } } }),
    ])
    expect(effective(world).denied).toBeDefined()
    expect(effective(world).policies).toBeUndefined()
    expect(conditionsOf(world.index.statuses(), 'a')).toEqual([
      {
        ancestor: 'Gateway/g',
        Accepted: 'False Invalid',
        Attached: 'True Attached',
        ResolvedRefs: 'True ResolvedRefs',
      },
    ])
  })

  it('deny at all targets of a policy with too many targets', () => {
    const targets = Array.from({ length: 40 }, (_, index) => `HTTPRoute/r${index}`)
    const world = createPolicyWorld([
      policy('a', { targets: [...targets, 'HTTPRoute/r'], traffic: requests(1) }),
    ])
    expect(effective(world).denied).toBeDefined()
  })

  it('do not deny if a more specific policy replaces the invalid field', () => {
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], traffic: { cors: { allowOrigins: ['not an origin'] } } }),
      policy('b', { targets: ['HTTPRoute/r'], traffic: { cors: { allowOrigins: ['*'] } } }),
    ])
    expect(effective(world).policies).toEqual({ cors: { allowOrigins: ['*'] } })
  })

  it('combine the allow rules of several levels', () => {
    const rules = (...matchExpressions: string[]) => ({ authorization: { matchExpressions } })
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], traffic: rules('jwt.a == 1', 'jwt.b == 1 // comment\n') }),
      policy('b', {
        targets: ['HTTPRoute/r'],
        traffic: { authorization: { action: 'Deny', matchExpressions: ['jwt.c == 1'] } },
      }),
      policy('c', { targets: ['HTTPRoute/r/first'], traffic: rules('jwt.d == 1') }),
    ])
    expect(effective(world).policies?.authorization?.rules).toEqual([
      { require: '(jwt.a == 1) || (jwt.b == 1 // comment\n)' },
      { deny: 'jwt.c == 1' },
      { require: 'jwt.d == 1' },
    ])
    expect(effective(world, { rule: undefined }).policies?.authorization?.rules).toEqual([
      { allow: 'jwt.a == 1' },
      { allow: 'jwt.b == 1 // comment\n' },
      { deny: 'jwt.c == 1' },
    ])
  })

  it('name the winner of a conflict in the status of the loser', () => {
    const world = createPolicyWorld([
      policy('new', { targets: ['Gateway/g'], traffic: { ...requests(1), retry: {} }, age: 1 }),
      policy('old', { targets: ['Gateway/g'], traffic: requests(2), age: 2 }),
      policy('worst', { targets: ['Gateway/g'], traffic: requests(3), age: 0 }),
    ])
    expect(effective(world).policies).toMatchObject({ localRateLimit: [{ requests: 2 }], retry: {} })
    const statuses = world.index.statuses()
    expect(conditionsOf(statuses, 'old')[0]).not.toHaveProperty('Overridden')
    expect(conditionsOf(statuses, 'new')[0]).toMatchObject({
      Accepted: 'True Accepted',
      Attached: 'True Attached',
      Overridden: 'True PartiallyOverridden',
    })
    expect(conditionsOf(statuses, 'worst')[0]).toMatchObject({
      Accepted: 'True Accepted',
      Attached: 'False Overridden',
      Overridden: 'True Overridden',
    })
    expect(JSON.stringify(statuses)).toContain('policy default/old takes precedence on Gateway/default/g')
  })

  it('keep a guard with a broken reference, which then refuses', () => {
    const webhook = { backendRef: { name: 'missing', port: 80 }, failureMode: 'FailOpen', action: 'Audit' }
    const world = createPolicyWorld([
      policy('a', { targets: ['Gateway/g'], backend: { ai: { promptGuard: { request: [{ webhook }] } } } }),
    ])
    expect(effective(world, { traffic: 'llm' })).toMatchObject({
      policies: {
        ai: {
          promptGuard: {
            request: [
              { webhook: { target: { backend: '/unresolved/Service/default/missing:80' }, action: 'audit' } },
            ],
          },
        },
      },
      backends: ['unresolved/Service/default/missing:80'],
    })
    expect(JSON.stringify(effective(world, { traffic: 'llm' }).policies)).not.toContain('failOpen')
    expect(conditionsOf(world.index.statuses(), 'a')[0]).toMatchObject({
      Accepted: 'True Accepted',
      ResolvedRefs: 'False BackendNotFound',
    })
  })

  it('follow changes of a Secret', () => {
    const apiKeyAuthentication = { secretRef: { name: 'keys' } }
    const keys = (ada: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'keys', namespace: 'default' },
      stringData: { ada },
    })
    const own = policy('a', { targets: ['Gateway/g'], traffic: { apiKeyAuthentication } })
    const hashOf = (world: PolicyWorld) => effective(world).policies?.apiKey?.keys[0]?.keyHash
    const missing = createPolicyWorld([own])
    expect(effective(missing).denied).toBeDefined()
    const first = missing.again([own, keys('tg-1')])
    const hash = hashOf(first)
    expect(hash).toMatch(/^sha256:/)
    expect(hashOf(first.again([own, keys('tg-2')]))).not.toBe(hash)
    expect(JSON.stringify(effective(first))).not.toContain('tg-1')
  })
})

describe('the status of a policy', () => {
  it('has at most 16 ancestors, the last of which counts the others', () => {
    const world = createPolicyWorld([policy('a', { targets: ['HTTPRoute/r'], traffic: requests(1) })])
    for (let index = 10; index < 30; index++) effective(world, { gateway: `default/g${index}` })
    const found = conditionsOf(world.index.statuses(), 'a')
    expect(found.map(({ ancestor }) => ancestor)).toEqual([
      ...Array.from({ length: 15 }, (_, index) => `Gateway/g${index + 10}`),
      'GatewayPolicy/status-summary',
    ])
    expect(JSON.stringify(world.index.statuses())).toContain(
      '5 further ancestors, of which 0 are not attached',
    )
  })

  it('reports the places of the same pass only', () => {
    const world = createPolicyWorld([policy('a', { targets: ['HTTPRoute/r'], traffic: requests(1) })])
    effective(world)
    expect(conditionsOf(world.index.statuses(), 'a')[0]).toMatchObject({ Attached: 'True Attached' })
    expect(conditionsOf(world.again().index.statuses(), 'a')[0]).toMatchObject({ Attached: 'False Pending' })
  })

  it('is the same for an invalid field at no place and at places of its kind', () => {
    const backend = { mcp: { mcpAuthorization: { matchExpressions: ['llm.model == "x"'] } } }
    const world = createPolicyWorld([policy('a', { targets: ['Gateway/g'], backend })])
    expect(conditionsOf(world.index.statuses(), 'a')[0]).toMatchObject({ Accepted: 'False Invalid' })
    expect(effective(world).denied).toBeUndefined()
    expect(effective(world, { traffic: 'mcp' }).denied).toBeDefined()
    expect(conditionsOf(world.index.statuses(), 'a')[0]).toMatchObject({ Accepted: 'False Invalid' })
  })
})
