import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readObject } from './read-object.ts'

const route = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: 'web' },
  spec: { rules: [{ backendRefs: [{ name: 'web', port: 80 }] }] },
}

describe('readObject', () => {
  it('adds the namespace default, and drops the other metadata that is not read', () => {
    const object = { ...route, metadata: { name: 'web', managedFields: [{}], creationTimestamp: null } }
    const expected = { ...route, metadata: { name: 'web', namespace: 'default' } }
    expect(readObject(object)).toEqual({ kind: 'object', object: expected })
  })

  it('drops the namespace of cluster-scoped kinds', () => {
    const outcome = readObject({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'a', namespace: 'b' },
    })
    expect(outcome).toEqual({
      kind: 'object',
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } },
    })
  })

  it('returns the spec of the input without a copy', () => {
    const outcome = readObject(route)
    expect(outcome.kind === 'object' && 'spec' in outcome.object && outcome.object.spec).toBe(route.spec)
  })

  it('ignores unknown fields of kinds of the Gateway API', () => {
    expect(readObject({ ...route, spec: { ...route.spec, later: true } }).kind).toBe('object')
  })

  it('refuses values of many levels, and retains the other members', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`)
    const outcome = readObject({
      ...route,
      spec: { ...route.spec, parentRefs: [{ name: 'web' }], later: deep },
    })
    expect(outcome.kind === 'invalid' && outcome.invalid).toMatchObject({
      mistakes: ['spec: must have at most 100 nested levels'],
      spec: { ...route.spec, parentRefs: [{ name: 'web' }] },
    })
  })

  it('treats nulls as absent, as written by Go for empty lists', () => {
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'a' },
      addressType: 'IPv4',
      endpoints: null,
      ports: null,
    }
    expect(readObject(slice)).toEqual({
      kind: 'object',
      object: {
        apiVersion: slice.apiVersion,
        kind: slice.kind,
        metadata: { name: 'a', namespace: 'default' },
        addressType: 'IPv4',
      },
    })
  })

  it('reports violations of the schema with their paths', () => {
    const spec = { rules: [{ backendRefs: [{ name: 'web', port: 70_000 }] }] }
    expect(readObject({ ...route, spec })).toEqual({
      kind: 'invalid',
      invalid: {
        kind: 'HTTPRoute',
        metadata: { name: 'web', namespace: 'default' },
        spec,
        mistakes: ['spec.rules[0].backendRefs[0].port: expected at most 65535, got the number 70000'],
      },
    })
  })

  it('reports unknown fields of the own kinds', () => {
    const policy = {
      apiVersion: 'tollgate.dev/v1alpha1',
      kind: 'GatewayParameters',
      metadata: { name: 'a' },
      sepc: {},
      spec: { environment: [] },
    }
    const outcome = readObject(policy)
    const mistakes = outcome.kind === 'invalid' ? outcome.invalid.mistakes.join('\n') : ''
    expect(mistakes).toContain('unknown key `sepc`')
    expect(mistakes).toContain('spec.environment: unknown key `environment`')
  })

  it('distinguishes other kinds from misspelled own kinds', () => {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' } }
    expect(readObject(deployment)).toEqual({ kind: 'other', description: 'Deployment of apps/v1' })
    const policy = { apiVersion: 'tollgate.dev/v1alpha1', kind: 'GatewayPolcy', metadata: { name: 'a' } }
    expect(readObject(policy).kind).toBe('unusable')
    const version = { apiVersion: 'tollgate.dev/v2', kind: 'GatewayPolicy', metadata: { name: 'a' } }
    expect(readObject(version)).toMatchObject({
      kind: 'invalid',
      invalid: { mistakes: ['apiVersion: must be tollgate.dev/v1alpha1'] },
    })
  })

  it.each([
    ['no object', 'text'],
    ['no kind', { apiVersion: 'v1', metadata: { name: 'a' } }],
    ['no metadata', { ...route, metadata: undefined }],
    ['no name', { ...route, metadata: {} }],
    ['a name with a slash', { ...route, metadata: { name: 'a/b' } }],
    ['a namespace with a dot', { ...route, metadata: { name: 'a', namespace: 'a.b' } }],
    ['a name that is too long', { ...route, metadata: { name: 'a'.repeat(254) } }],
  ])('refuses %s', (_name, value) => {
    expect(readObject(value).kind).toBe('unusable')
  })

  it('omits values of Secrets, labels and annotations from mistakes', () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } }
    for (const object of [
      { ...secret, stringData: { key: 987_654 } },
      { ...secret, data: 'hunter2' },
      { ...secret, stringData: { key: ['hunter2'] } },
      { ...secret, metadata: { name: 'a', annotations: { copy: 987_654 } } },
    ]) {
      const outcome = readObject(object)
      expect(outcome.kind).toBe('invalid')
      expect(JSON.stringify(outcome)).not.toMatch(/hunter2|987654/)
    }
  })

  it('never throws, and returns a limited number of mistakes', () => {
    const kinds = ['HTTPRoute', 'Gateway', 'Secret', 'GatewayPolicy', 'EndpointSlice', 'Service', '__proto__']
    const versions = ['v1', 'gateway.networking.k8s.io/v1', 'tollgate.dev/v1alpha1', 'discovery.k8s.io/v1']
    const object = fc.record(
      {
        apiVersion: fc.oneof(fc.constantFrom(...versions), fc.anything()),
        kind: fc.oneof(fc.constantFrom(...kinds), fc.anything()),
        metadata: fc.oneof(fc.record({ name: fc.string() }), fc.constant({ name: 'a' }), fc.anything()),
        spec: fc.oneof(
          fc.record({ rules: fc.anything(), listeners: fc.anything(), targetRefs: fc.anything() }),
          fc.anything(),
        ),
        data: fc.anything(),
        endpoints: fc.anything(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(object, fc.anything({ withBigInt: true })), (value) => {
        const outcome = readObject(value)
        if (outcome.kind === 'invalid') expect(outcome.invalid.mistakes.length).toBeLessThanOrEqual(42)
      }),
    )
  })
})
