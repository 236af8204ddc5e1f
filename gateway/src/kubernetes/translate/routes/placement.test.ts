import { describe, expect, it } from 'vitest'
import type { ListenerPlan } from '../plan.ts'
import type { Effective, PolicyIndex } from '../policies/policies.ts'
import { createPlacement } from './placement.ts'
import { createPolicyCheck } from './rules/policy-check.ts'
import type { RulePlan } from './rules/rule-plan.ts'

const plan: RulePlan = {
  index: 0,
  name: 'read',
  matches: undefined,
  policies: { urlRewrite: { authority: 'none' } },
  backends: [{ backend: '/Service/n/s:80' }],
  traffic: 'http',
  redirectsToListenerPort: false,
  names: ['Service/n/s:80'],
  mistakes: [],
}

const none: Effective = { policies: undefined, backends: [] }

describe('the placement of a rule', () => {
  it('is one route for all listeners with the same policies', () => {
    const { outcome } = place(plan, () => none)
    expect(outcome.configs).toEqual([
      {
        name: 'HTTPRoute/n/r/0',
        gateways: ['80/one', '80/two'],
        policies: plan.policies,
        backends: plan.backends,
      },
    ])
  })

  it('is a route for each group of listeners with other policies', () => {
    const cors = { policies: { cors: { allowOrigins: ['*'] } }, backends: ['Service/n/limits:80'] }
    const { outcome } = place(plan, ({ listener }) => (listener === 'two' ? cors : none))
    expect(outcome.configs.map(({ name, gateways, policies }) => [name, gateways, policies])).toEqual([
      ['HTTPRoute/n/r/0@one', ['80/one'], plan.policies],
      ['HTTPRoute/n/r/0@two', ['80/two'], { cors: { allowOrigins: ['*'] }, ...plan.policies }],
    ])
    expect(outcome.names).toEqual(['Service/n/s:80', 'Service/n/limits:80'])
  })

  it('replaces fields of policies by those of the rule', () => {
    const own = { ...plan, policies: { timeout: { requestTimeout: '1s' } } }
    const policies = { timeout: { requestTimeout: '9s' }, cors: {} }
    const { outcome } = place(own, () => ({ policies, backends: [] }))
    expect(outcome.configs[0]?.policies).toEqual({ timeout: { requestTimeout: '1s' }, cors: {} })
  })

  it('refuses all requests of a rule with an invalid policy, without its backends', () => {
    const denied = { ...none, denied: 'GatewayPolicy n/p is not valid' }
    const { outcome } = place(plan, () => denied)
    expect(outcome.configs[0]).toEqual({
      name: 'HTTPRoute/n/r/0',
      gateways: ['80/one', '80/two'],
      backends: [{ error: { status: 500, message: 'the rule of this route is not valid' } }],
    })
    expect([outcome.names, outcome.mistakes]).toEqual([[], []])
  })

  it('refuses all requests of a rule that contradicts its policies, and reports the contradiction', () => {
    const redirect = { policies: { requestRedirect: { path: { prefix: '/a' } } }, backends: [] }
    const exact = { ...plan, policies: { requestRedirect: { status: 304 } } }
    const { outcome } = place(exact, () => redirect)
    expect(outcome.configs[0]?.backends).toEqual([
      { error: { status: 500, message: 'the rule of this route is not valid' } },
    ])
    expect(outcome.mistakes[0]?.message).toContain('spec.rules[0]: must fit its GatewayPolicies: ')
  })

  it('has no backends where a policy responds to every request', () => {
    const policies = { directResponse: { status: 503 } }
    const { outcome } = place(plan, () => ({ policies, backends: [] }))
    expect(outcome.configs[0]?.backends).toBeUndefined()
    expect(outcome.configs[0]?.policies).toEqual({ ...policies, ...plan.policies })
  })

  it('has the routes of the previous result while policies are the same objects', () => {
    const policies: PolicyIndex = { policiesOf: () => none, frontendOf: () => undefined, statuses: () => [] }
    const placeRule = createPlacement(createPolicyCheck())
    const first = placeRule(plan, at, policies, undefined)
    expect(placeRule(plan, at, policies, first)).toBe(first)
    const changed: PolicyIndex = { ...policies, policiesOf: () => ({ ...none }) }
    expect(placeRule(plan, at, changed, first)).not.toBe(first)
  })
})

const listeners = ['one', 'two'].map(
  (name): ListenerPlan => ({
    gateway: 'n/g',
    name,
    port: 80,
    hostname: undefined,
    protocol: 'HTTP',
    isPassthrough: false,
    kinds: ['HTTPRoute'],
    allowsNamespace: () => true,
    reference: `80/${name}`,
  }),
)

const at = {
  gateway: 'n/g',
  listeners,
  route: { kind: 'HTTPRoute', key: 'n/r' },
  hostnames: undefined,
} as const

function place(rule: RulePlan, policiesOf: PolicyIndex['policiesOf']) {
  const policies: PolicyIndex = { policiesOf, frontendOf: () => undefined, statuses: () => [] }
  return createPlacement(createPolicyCheck())(rule, at, policies, undefined)
}
