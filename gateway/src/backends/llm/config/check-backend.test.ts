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

describe('checkLlmBackend', () => {
  it('accepts valid backends', () => {
    const policies = {
      ai: { routes: { '/v1/messages': 'messages', '*': 'passthrough' }, modelAliases: { 'a*': 'b' } },
      backendAuth: { key: 'k' },
    } as const
    expect(mistakesOf({ provider: { openAI: {} }, pathPrefix: '/v2', policies })).toEqual([])
    expect(mistakesOf({ provider: { custom: {} }, hostOverride: 'a:1', pathOverride: '/x' })).toEqual([])
  })

  it('requires hostOverride for custom servers', () => {
    expect(mistakesOf({ provider: { custom: {} } })).toEqual([
      'provider.custom: provider "custom" requires hostOverride',
    ])
  })

  it('rejects an address for a local provider', () => {
    expect(mistakesOf({ provider: { echo: {} }, hostOverride: 'a:1' })[0]).toMatch(
      /^hostOverride: .*no address/,
    )
  })

  it.each(['v1', '', '/a b', '/a?b', '/a#b', '/ü'])('rejects the path "%s"', (text) => {
    expect(mistakesOf({ provider: { openAI: {} }, pathOverride: text })).toHaveLength(1)
    expect(mistakesOf({ provider: { openAI: {} }, pathPrefix: text })).toHaveLength(1)
  })

  it('rejects port 0, and pathOverride with pathPrefix', () => {
    expect(mistakesOf({ provider: { openAI: {} }, hostOverride: 'a:0' })).toHaveLength(1)
    expect(mistakesOf({ provider: { openAI: {} }, pathOverride: '/a', pathPrefix: '/b' })).toHaveLength(1)
  })

  it('rejects provider keys with groups, and routes inside groups', () => {
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

  it('rejects an invalid credential without printing it', () => {
    const policies = { backendAuth: { key: 'top secret' } }
    const found = mistakesOf({ provider: { openAI: {} }, policies })
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^policies.backendAuth.key/)
    expect(found[0]).not.toContain('top')
  })
})

describe('checkLlmPolicy', () => {
  it('rejects invalid path suffixes', () => {
    const routes = {
      'v1/messages': 'messages',
      '/v1/': 'messages',
      '/v1/*': 'messages',
      '': 'messages',
    } as const
    expect(policyMistakesOf({ routes })).toEqual(Object.keys(routes).map((suffix) => `routes ${suffix}`))
  })

  it('rejects invalid model patterns', () => {
    expect(policyMistakesOf({ modelAliases: { 'a*b': 'x', '**': 'x', '': 'x', ok: 'x' } })).toEqual([
      'modelAliases a*b',
      'modelAliases **',
      'modelAliases ',
    ])
  })
})
