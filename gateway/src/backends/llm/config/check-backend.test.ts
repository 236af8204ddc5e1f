import { describe, expect, it } from 'vitest'
import type { LlmBackendConfig, LlmPolicyConfig } from './backend-config.ts'
import { checkLlmBackend, checkLlmPolicy } from './check-backend.ts'

function mistakesOf(config: LlmBackendConfig): string[] {
  const found: string[] = []
  checkLlmBackend(config, (path, message) => found.push(`${path.join('.')}: ${message}`))
  return found
}

function policyMistakesOf(policy: LlmPolicyConfig): string[] {
  const found: string[] = []
  checkLlmPolicy(policy, (path) => found.push(path.join(' ')))
  return found
}

describe('checkAi', () => {
  it('finds nothing wrong with what works', () => {
    const policies = {
      ai: { routes: { '/v1/messages': 'messages', '*': 'passthrough' }, modelAliases: { 'a*': 'b' } },
      backendAuth: { key: 'k' },
    } as const
    expect(mistakesOf({ provider: { openAI: {} }, pathPrefix: '/v2', policies })).toEqual([])
    expect(mistakesOf({ provider: { custom: {} }, hostOverride: 'a:1', pathOverride: '/x' })).toEqual([])
  })

  it('says that a server of one’s own needs an address', () => {
    expect(mistakesOf({ provider: { custom: {} } })).toEqual([
      'provider.custom: provider "custom" requires hostOverride',
    ])
  })

  it('refuses an address for what answers inside', () => {
    expect(mistakesOf({ provider: { echo: {} }, hostOverride: 'a:1' })[0]).toMatch(
      /^hostOverride: .*no address/,
    )
  })

  it.each(['v1', '', '/a b', '/a?b', '/a#b', '/ü'])('refuses the path "%s"', (text) => {
    expect(mistakesOf({ provider: { openAI: {} }, pathOverride: text })).toHaveLength(1)
    expect(mistakesOf({ provider: { openAI: {} }, pathPrefix: text })).toHaveLength(1)
  })

  it('refuses a port that is none, and two ways to say the path', () => {
    expect(mistakesOf({ provider: { openAI: {} }, hostOverride: 'a:0' })).toHaveLength(1)
    expect(mistakesOf({ provider: { openAI: {} }, pathOverride: '/a', pathPrefix: '/b' })).toHaveLength(1)
  })

  it('refuses what belongs to a provider beside groups, and the other way round', () => {
    const providers = [
      { name: 'a', provider: { openAI: {} } },
      { name: 'a', provider: { openAI: {} }, policies: { ai: { routes: { '*': 'messages' } as const } } },
    ]
    expect(mistakesOf({ name: 'x', hostOverride: 'a:1', groups: [{ providers }] })).toEqual([
      'name: is only valid on providers of groups[].providers',
      'hostOverride: is only valid on providers of groups[].providers',
      expect.stringMatching(/^groups.0.providers.1.policies.ai.routes: /),
      'groups.0.providers.1.name: duplicate provider name "a"',
    ])
  })

  it('refuses a credential that cannot be sent, without showing it', () => {
    const policies = { backendAuth: { key: 'top secret' } }
    const found = mistakesOf({ provider: { openAI: {} }, policies })
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^policies.backendAuth.key/)
    expect(found[0]).not.toContain('top')
  })
})

describe('checkAiPolicy', () => {
  it('refuses ends of paths that no path has', () => {
    const routes = {
      'v1/messages': 'messages',
      '/v1/': 'messages',
      '/v1/*': 'messages',
      '': 'messages',
    } as const
    expect(policyMistakesOf({ routes })).toEqual(Object.keys(routes).map((suffix) => `routes ${suffix}`))
  })

  it('refuses names of models that are no patterns', () => {
    expect(policyMistakesOf({ modelAliases: { 'a*b': 'x', '**': 'x', '': 'x', ok: 'x' } })).toEqual([
      'modelAliases a*b',
      'modelAliases **',
      'modelAliases ',
    ])
  })
})
