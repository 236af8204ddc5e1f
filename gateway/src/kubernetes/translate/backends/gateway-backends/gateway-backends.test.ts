import { describe, expect, it } from 'vitest'
import { createServiceNames } from '../../../objects/manifests/service-names.ts'
import { keyOf } from '../../../objects/meta.ts'
import { emptyObjectSet, type ObjectSet } from '../../../objects/object-set.ts'
import { readObject } from '../../../objects/read-object.ts'
import { createMemo } from '../memo.ts'
import { createReferences } from '../references.ts'

/** Reads objects as the API returns them. */
function objectSet(values: readonly unknown[]): ObjectSet {
  const objects = emptyObjectSet()
  for (const value of values) {
    const outcome = readObject(value)
    if (outcome.kind !== 'object') throw new Error(JSON.stringify(outcome))
    const { object } = outcome
    // The maps of this set belong to the test.
    const map = objects[object.kind] as unknown as Map<string, unknown>
    map.set(keyOf(object), object)
  }
  return createServiceNames()(objects)
}

function backendsOf(values: readonly unknown[]) {
  return createReferences(objectSet(values), createMemo()).gatewayBackends
}

/** A GatewayBackend `app/it` with the given specification, and other objects. */
function manifest(spec: unknown, ...others: unknown[]): unknown[] {
  const metadata = { name: 'it', namespace: 'app' }
  return [{ apiVersion: 'tollgate.dev/v1alpha1', kind: 'GatewayBackend', metadata, spec }, ...others]
}

function secret(stringData: Record<string, string>, namespace = 'app') {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace }, stringData }
}

function service(name: string, ports: unknown[], extra: { labels?: object; namespace?: string } = {}) {
  const { labels = {}, namespace = 'app' } = extra
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, labels },
    spec: { clusterIP: '10.0.0.7', ports },
  }
}

function conditionsOf(objects: readonly unknown[]) {
  const [status] = backendsOf(objects).statuses()
  if (status?.of !== 'conditions') throw new Error('no conditions')
  return status.status.conditions.map(({ type, status, reason, message }) => [type, status, reason, message])
}

const openAi = { provider: { openAI: { model: 'gpt-4o-mini' } } }
const withKey = { policies: { auth: { secretRef: { name: 'key' } } } }

describe('ai', () => {
  it.each([
    ['sk-1', 'sk-1'],
    ['Bearer sk-2', 'sk-2'],
    ['  sk-3\n', 'sk-3'],
  ])('reads the credential %j from the entry Authorization', (entry, key) => {
    const backends = backendsOf(manifest({ ai: { ...openAi, ...withKey } }, secret({ Authorization: entry })))
    expect(backends.config('app/it', undefined)).toEqual([
      { name: 'GatewayBackend/app/it', ai: { ...openAi, policies: { backendAuth: { key } } } },
    ])
    expect(backends.find('app/it')).toEqual({
      kind: 'backend',
      name: 'GatewayBackend/app/it',
      traffic: 'llm',
    })
  })

  it.each([
    [[], 'Secret app/key does not exist'],
    [[secret({ other: 'x' })], 'entry Authorization of Secret app/key does not exist'],
    [
      [secret({ Authorization: 'two words' })],
      'entry Authorization of Secret app/key must be a credential: printable ASCII without spaces',
    ],
  ])('is not usable without its credential: %j', (others, message) => {
    const objects = manifest({ ai: { ...openAi, ...withKey } }, ...others)
    expect(conditionsOf(objects)).toEqual([
      ['Accepted', 'True', 'Accepted', ''],
      ['ResolvedRefs', 'False', 'InvalidRef', `spec.ai.policies.auth.secretRef: ${message}`],
    ])
    expect(backendsOf(objects).config('app/it', undefined)).toEqual([])
    expect(backendsOf(objects).find('app/it').kind).toBe('invalid')
    expect(JSON.stringify(backendsOf(objects).find('app/it'))).not.toContain('two words')
  })

  it('omits providers with broken references while others remain', () => {
    const groups = [{ providers: [{ ...openAi, name: 'one', ...withKey }] }, { providers: [{ ...openAi }] }]
    const objects = manifest({ ai: { groups } })
    expect(backendsOf(objects).config('app/it', undefined)).toEqual([
      { name: 'GatewayBackend/app/it', ai: { groups: [{ providers: [openAi] }] } },
    ])
    expect(conditionsOf(objects)[1]).toMatchObject(['ResolvedRefs', 'False', 'InvalidRef', expect.anything()])
  })

  it('sends requests to the address of a Service', () => {
    const spec = { ai: { provider: { custom: {} }, backendRef: { name: 'vllm', port: 8000 } } }
    const [main] = backendsOf(manifest(spec, service('vllm', [{ port: 8000 }]))).config('app/it', undefined)
    expect(main?.ai).toEqual({ provider: { custom: {} }, hostOverride: '10.0.0.7:8000' })
  })

  it('reports mistakes of the specification with their places', () => {
    const objects = manifest({ ai: { provider: { ollama: {} } }, policies: { health: {} } })
    expect(conditionsOf(objects)[0]).toEqual([
      'Accepted',
      'False',
      'Invalid',
      'spec.policies.health: is only valid with static; spec.ai.provider: ollama needs backendRef or hostOverride: it has no public address',
    ])
  })
})

describe('static', () => {
  it.each([
    ['localhost', 'must not be the proxy itself: containers of its Pod are not backends'],
    ['127.0.0.1', 'must not be the proxy itself: containers of its Pod are not backends'],
    ['::1', 'must not be the proxy itself: containers of its Pod are not backends'],
    ['169.254.169.254', 'must not be a link-local or metadata address'],
    ['web', 'must be a fully qualified name: use backendRef for a Service'],
    ['a b', 'must be a DNS name or an IP address'],
    ['127.1', 'must be a DNS name or an IP address'],
    ['0x7f.0.0.1', 'must be a DNS name or an IP address'],
    ['0.0.0x1', 'must be a DNS name or an IP address'],
  ])('rejects the host %s', (host, message) => {
    expect(conditionsOf(manifest({ static: { hosts: [{ host, port: 80 }] } }))[0]).toEqual([
      'Accepted',
      'False',
      'Invalid',
      `spec.static.hosts[0].host: ${message}`,
    ])
  })

  const grant = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'ReferenceGrant',
    metadata: { name: 'grant', namespace: 'other' },
    spec: {
      from: [{ group: 'tollgate.dev', kind: 'GatewayBackend', namespace: 'app' }],
      to: [{ group: '', kind: 'Service', name: 'web' }],
    },
  }
  const other = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } }

  it.each([
    ['web.app.svc', [], 'True'],
    ['web.other.svc', [], 'False'],
    ['web.other.svc.cluster.local', [], 'False'],
    ['pod-0.web.other.svc.cluster.local', [], 'False'],
    ['web.other.svc.cluster.local', [grant], 'True'],
    ['api.other.svc', [grant], 'False'],
    ['web.other', [], 'True'],
    ['web.other', [other], 'False'],
    ['web.other.svc.corp.example', [other], 'False'],
    ['api.svc.example.com', [], 'True'],
  ])('treats the DNS name %s of a Service as a reference (%#)', (host, others, resolved) => {
    const objects = manifest({ static: { hosts: [{ host, port: 80 }] } }, ...others)
    expect(conditionsOf(objects)[1]?.[1]).toBe(resolved)
    expect(backendsOf(objects).find('app/it').kind).toBe(resolved === 'True' ? 'backend' : 'invalid')
  })

  it('becomes a host, or endpoints with weights', () => {
    const one = manifest({
      static: { hosts: [{ host: 'api.example.com', port: 443 }] },
      policies: { tls: {} },
    })
    expect(backendsOf(one).config('app/it', undefined)).toEqual([
      { name: 'GatewayBackend/app/it', host: 'api.example.com:443', policies: { backendTLS: {} } },
    ])
    const hosts = [
      { host: 'a.example.com', port: 80, weight: 9 },
      { host: '2001:db8::1', port: 80 },
    ]
    expect(backendsOf(manifest({ static: { hosts } })).config('app/it', undefined)).toEqual([
      {
        name: 'GatewayBackend/app/it',
        endpoints: [{ host: 'a.example.com:80', weight: 9 }, { host: '[2001:db8::1]:80' }],
      },
    ])
  })
})

describe('mcp', () => {
  const one = { name: 'one', static: { host: 'mcp.example.com', port: 443 }, policies: { tls: {} } }

  it('translates targets by address and by Service, each Service as a backend of its own', () => {
    const two = {
      name: 'two',
      backendRef: { name: 'tools', port: 80 },
      path: '/x',
      protocol: 'SSE',
      ...withKey,
    }
    const spec = { mcp: { targets: [one, two], prefixMode: 'Always', failureMode: 'FailOpen' } }
    const objects = manifest(spec, service('tools', [{ port: 80 }]), secret({ Authorization: 'k' }))
    expect(backendsOf(objects).config('app/it', undefined)).toEqual([
      {
        name: 'GatewayBackend/app/it',
        mcp: {
          targets: [
            { name: 'one', mcp: { host: 'mcp.example.com', port: 443 }, policies: { backendTLS: {} } },
            { name: 'two', sse: { backend: '/GatewayBackend/app/it/two', path: '/x' } },
          ],
          prefixMode: 'always',
          failureMode: 'failOpen',
        },
      },
      {
        name: 'GatewayBackend/app/it/two',
        endpoints: [{ host: 'tools.app.svc:80' }],
        policies: { backendAuth: { key: 'k' } },
      },
    ])
    expect(conditionsOf(objects).map(([, status]) => status)).toEqual(['True', 'True'])
  })

  it('selects Services by labels, by their ports for MCP', () => {
    const labels = { team: 'search' }
    const spec = { mcp: { targets: [{ name: 'all', selector: { matchLabels: labels } }] } }
    const objects = manifest(
      spec,
      service(
        'b',
        [
          { port: 80, name: 'web' },
          { port: 81, name: 'mcp', appProtocol: 'tollgate.dev/mcp-sse' },
        ],
        {
          labels,
        },
      ),
      service('a', [{ port: 90 }], { labels }),
      service('c', [{ port: 90 }]),
      service('d', [{ port: 90 }], { labels, namespace: 'other' }),
    )
    const [main] = backendsOf(objects).config('app/it', undefined)
    expect(main?.mcp).toEqual({
      targets: [
        { name: 'all-a', mcp: { backend: '/GatewayBackend/app/it/all-a' } },
        { name: 'all-b', sse: { backend: '/GatewayBackend/app/it/all-b' } },
      ],
    })
  })

  it.each([
    ['FailClosed', 0],
    ['FailOpen', 1],
  ])('with %s has %i targets left if one reference is broken', (failureMode, count) => {
    const broken = { name: 'two', backendRef: { name: 'none', port: 80 } }
    const [main] = backendsOf(manifest({ mcp: { targets: [one, broken], failureMode } })).config(
      'app/it',
      undefined,
    )
    expect(main?.mcp?.targets.length ?? 0).toBe(count)
    // The tools of the remaining target keep their names.
    expect(main?.mcp?.prefixMode).toBe(count === 0 ? undefined : 'always')
  })

  it('refuses large OpenAPI documents in YAML before it parses them', () => {
    const target = { name: 'api', static: one.static, protocol: 'OpenAPI', schemaRef: { name: 'doc' } }
    const document = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'doc', namespace: 'app' },
      data: { 'openapi.yaml': '['.repeat(140_000) },
    }
    const messages = conditionsOf(manifest({ mcp: { targets: [target] } }, document)).map(
      ([, , , text]) => text,
    )
    expect(messages.join()).toContain(
      'must be JSON of at most 100 levels, or YAML of at most 131072 characters',
    )
  })

  it('reads OpenAPI documents from ConfigMaps', () => {
    const target = { name: 'api', static: one.static, protocol: 'OpenAPI', schemaRef: { name: 'doc' } }
    const document = { openapi: '3.0.0', info: { title: 't', version: '1' }, paths: {} }
    const map = (text: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'doc', namespace: 'app' },
      data: { 'openapi.yaml': text },
    })
    const [main] = backendsOf(manifest({ mcp: { targets: [target] } }, map(JSON.stringify(document)))).config(
      'app/it',
      undefined,
    )
    expect(main?.mcp?.targets[0]?.openapi?.schema).toEqual(document)
    const broken = manifest({ mcp: { targets: [target] } }, map('a: [1'))
    expect(conditionsOf(broken)[1]).toMatchObject(['ResolvedRefs', 'False', 'InvalidRef', expect.anything()])
  })

  it('reports duplicate names of targets', () => {
    expect(conditionsOf(manifest({ mcp: { targets: [one, one] } }))[0]?.[3]).toContain('must be unique')
  })
})

it('translates again only after a change of a referenced object', () => {
  const objects = objectSet(manifest({ ai: { ...openAi, ...withKey } }, secret({ Authorization: 'one' })))
  const memo = createMemo()
  const configOf = (set: typeof objects) =>
    createReferences(set, memo).gatewayBackends.config('app/it', undefined)[0]
  const before = configOf(objects)
  expect(configOf({ ...objects })).toBe(before)
  const { Secret } = objectSet(manifest({ ai: openAi }, secret({ Authorization: 'two' })))
  expect(configOf({ ...objects, Secret })?.ai?.policies?.backendAuth).toEqual({ key: 'two' })
})
