import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { crdYaml, ownCrds } from '../../src/kubernetes/crd/own-crds.ts'

// The definitions on a real API server, which alone checks the rules and their cost. KUBE_TOOL is the folder
// of the tool that starts it.

const tool = process.env['KUBE_TOOL']
const script = tool === undefined ? undefined : join(tool, 'kube.sh')
const startMs = 180_000

const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'chat' }
const guard = { webhook: { backendRef: { kind: 'Service', name: 'guard', port: 8000 } } }
const webhook = (fields: object) => ({
  targetRefs: [target],
  backend: { ai: { promptGuard: { request: [{ webhook: { ...guard.webhook, ...fields } }] } } },
})
const limit = (entry: object) => ({ targetRefs: [target], traffic: { rateLimit: { local: [entry] } } })
const backendRef = { name: 'authorizer', port: 9000 }
const service = (extAuth: object) => ({ targetRefs: [target], traffic: { extAuth } })
const variable = (fields: object) => ({ env: [fields] })

const good: [kind: string, spec: object][] = [
  ['GatewayPolicy', { targetRefs: [{ ...target, kind: 'Gateway', sectionName: 'http' }] }],
  [
    'GatewayPolicy',
    { targetRefs: [target], backend: { ai: { promptGuard: { request: [guard], response: [guard] } } } },
  ],
  ['GatewayPolicy', webhook({ headers: { 'x-user': 'jwt.sub' }, failureMode: 'FailOpen', action: 'Audit' })],
  ['GatewayPolicy', limit({ requests: 10, unit: 'Seconds', burst: 5 })],
  ['GatewayPolicy', limit({ tokens: 100_000, unit: 'Hours' })],
  ['GatewayPolicy', service({ conditional: [{ condition: 'true', policy: { backendRef, grpc: {} } }] })],
  ['GatewayPolicy', service({ backendRef, http: {}, forwardBody: { maxSize: '64Ki' } })],
  ['GatewayPolicy', service({ backendRef, http: {}, forwardBody: { maxSize: 8192 } })],
  [
    'GatewayPolicy',
    {
      targetRefs: [{ ...target, kind: 'Gateway' }],
      frontend: { tracing: { backendRef, randomSampling: '0.1' } },
      traffic: { transformation: { request: { set: [{ name: ':path', value: '"/"' }] } } },
    },
  ],
  ['GatewayParameters', {}],
  ['GatewayParameters', variable({ name: 'GUARDRAIL_WEBHOOK_MAX_CONNECTIONS', value: '200' })],
  ['GatewayParameters', variable({ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } })],
  [
    'GatewayParameters',
    {
      replicas: 2,
      resources: { requests: { cpu: 1, memory: '1Gi' } },
      shutdown: { min: '5s', max: '1m30s' },
      podDisruptionBudget: { maxUnavailable: '50%' },
      overlays: { podTemplate: { spec: { nodeSelector: { a: 'b' }, containers: [{ name: 'proxy' }] } } },
    },
  ],
  ['GatewayBackend', { static: { hosts: [{ host: 'api.example.com', port: 443 }] } }],
  [
    'GatewayBackend',
    { mcp: { targets: [{ name: 'search', static: { host: 'search.example.com', port: 80 } }] } },
  ],
  ['GatewayBackend', { ai: { provider: { openAI: { model: 'gpt-5' } } } }],
]

const bad: [reason: string, kind: string, spec: object, message: RegExp][] = [
  ['no targets', 'GatewayPolicy', { targetRefs: [] }, /targetRefs.*at least 1 items/],
  [
    'frontend on a route',
    'GatewayPolicy',
    { targetRefs: [target], frontend: { http: { maxBufferSize: 10 } } },
    /frontend requires Gateways without sectionName/,
  ],
  ['no target field', 'GatewayPolicy', {}, /spec\.targetRefs: Required value/],
  ['17 targets', 'GatewayPolicy', { targetRefs: Array(17).fill(target) }, /must have at most 16 items/],
  [
    'a target of another group',
    'GatewayPolicy',
    { targetRefs: [{ ...target, group: 'apps' }] },
    /group: Unsupported value/,
  ],
  [
    'a target of another kind',
    'GatewayPolicy',
    { targetRefs: [{ ...target, kind: 'Service' }] },
    /kind: Unsupported value/,
  ],
  ['a target without name', 'GatewayPolicy', { targetRefs: [{ ...target, name: '' }] }, /at least 1 char/],
  ['an unknown field', 'GatewayPolicy', { targetRefs: [target], trafic: {} }, /unknown field "spec\.trafic"/],
  ['an unknown nested field', 'GatewayPolicy', webhook({ timeout: '1s' }), /unknown field .*timeout/],
  [
    'an unknown failure mode',
    'GatewayPolicy',
    webhook({ failureMode: 'failOpen' }),
    /Unsupported value: "failOpen"/,
  ],
  [
    'requests and tokens',
    'GatewayPolicy',
    limit({ requests: 1, tokens: 1, unit: 'Hours' }),
    /exactly one of requests, tokens/,
  ],
  [
    'neither requests nor tokens',
    'GatewayPolicy',
    limit({ unit: 'Hours' }),
    /exactly one of requests, tokens/,
  ],
  ['no unit', 'GatewayPolicy', limit({ requests: 1 }), /unit: Required value/],
  ['requests as text', 'GatewayPolicy', limit({ requests: '1', unit: 'Hours' }), /must be of type integer/],
  ['zero requests', 'GatewayPolicy', limit({ requests: 0, unit: 'Hours' }), /greater than or equal to 1/],
  [
    'value and valueFrom',
    'GatewayParameters',
    variable({ name: 'A', value: '', valueFrom: { fieldRef: { fieldPath: 'x' } } }),
    /exactly one of value, valueFrom is required/,
  ],
  ['a number as value', 'GatewayParameters', variable({ name: 'A', value: 1 }), /must be of type string/],
  [
    'a reserved variable',
    'GatewayParameters',
    variable({ name: 'SESSION_KEY', value: 'x' }),
    /env must not contain variables that the controller sets/,
  ],
  [
    'a variable twice',
    'GatewayParameters',
    {
      env: [
        { name: 'A', value: '1' },
        { name: 'A', value: '2' },
      ],
    },
    /Duplicate value/,
  ],
  [
    'a duration without unit',
    'GatewayParameters',
    { shutdown: { min: '5' } },
    /must be a duration such as 500ms, 10s or 1h30m/,
  ],
  [
    'two bounds of a budget',
    'GatewayParameters',
    { podDisruptionBudget: { minAvailable: 1, maxUnavailable: 1 } },
    /exactly one of minAvailable, maxUnavailable/,
  ],
  [
    'an unknown type of service',
    'GatewayParameters',
    { service: { type: 'ExternalName' } },
    /Unsupported value/,
  ],
  ['too many replicas', 'GatewayParameters', { replicas: 1_001 }, /less than or equal to 1000/],
  ['no destination', 'GatewayBackend', {}, /exactly one of ai, mcp, static is required/],
  [
    'two destinations',
    'GatewayBackend',
    {
      static: { hosts: [{ host: 'a', port: 1 }] },
      mcp: { targets: [{ name: 'a', static: { host: 'a', port: 1 } }] },
    },
    /exactly one of ai, mcp, static is required/,
  ],
  [
    'a port above the range',
    'GatewayBackend',
    { static: { hosts: [{ host: 'a', port: 65_536 }] } },
    /less than or equal to 65535/,
  ],
  [
    'a program as MCP server',
    'GatewayBackend',
    { mcp: { targets: [{ name: 'a', stdio: { cmd: 'sh' } }] } },
    /unknown field .*stdio/,
  ],
]

describe.skipIf(script === undefined || !existsSync(script))('definitions on an API server', () => {
  const state = mkdtempSync(join(tmpdir(), 'kube-'))
  const env = { ...process.env, TOLLGATE_KUBE_STATE: state, TOLLGATE_KUBE_PORT: '7443' }

  function kubectl(args: readonly string[], input: unknown) {
    const text = typeof input === 'string' ? input : JSON.stringify(input)
    const { status, stdout, stderr } = spawnSync(script ?? '', ['kubectl', ...args], {
      env,
      input: text,
      encoding: 'utf8',
    })
    return { status, output: stdout + stderr }
  }

  const create = (kind: string, spec: object) =>
    kubectl(['create', '--dry-run=server', '-f', '-'], {
      apiVersion: 'tollgate.dev/v1alpha1',
      kind,
      metadata: { name: 'example', namespace: 'default' },
      spec,
    })

  beforeAll(() => {
    execFileSync(script ?? '', ['up', '--plain'], { env, stdio: 'ignore' })
    // Client-side apply, whose annotation limits the size.
    const crds = ownCrds().map(crdYaml).join('---\n')
    expect(kubectl(['apply', '-f', '-'], crds)).toMatchObject({ status: 0 })
    const names = ownCrds().map(({ metadata }) => `crd/${metadata.name}`)
    expect(kubectl(['wait', '--for=condition=Established', ...names], '')).toMatchObject({ status: 0 })
  }, startMs)

  afterAll(() => {
    execFileSync(script ?? '', ['down'], { env, stdio: 'ignore' })
    rmSync(state, { recursive: true, force: true })
  }, startMs)

  it.each(good)('accept a %s with %j', (kind, spec) => {
    expect(create(kind, spec)).toMatchObject({ status: 0 })
  })

  it.each(bad)('refuse %s', (_, kind, spec, message) => {
    const { status, output } = create(kind, spec)
    expect({ status, output }).toEqual({ status: 1, output: expect.stringMatching(message) })
  })

  it('find the kinds by their short names', () => {
    for (const name of ['tgpol', 'tgparams', 'tgbe'])
      expect(kubectl(['get', name], '').output).toContain('No resources found')
  })
})
