import { describe, expect, it } from 'vitest'
import type { Manifests } from '../objects/manifests/manifests.ts'
import { createManifestReader } from '../objects/manifests/manifests.ts'
import { parseManifest } from '../objects/manifests/parse-manifest.ts'
import { createTranslator } from '../translate/translate.ts'
import { checkObjects } from './check.ts'
import { isAccepted, reportJson, reportText } from './report.ts'

const gateways = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: tollgate }
spec: { controllerName: tollgate.dev/controller }
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: other }
spec: { controllerName: example.com/other }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web }
spec:
  gatewayClassName: tollgate
  listeners:
    - { name: http, port: 80, protocol: HTTP }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: theirs }
spec:
  gatewayClassName: other
  listeners:
    - { name: http, port: 80, protocol: HTTP }
`

function route(name: string, parent: string, more = ''): string {
  return `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: ${parent} }]
${more}`
}

async function read(text: string): Promise<Manifests> {
  const reader = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
  return reader([{ name: 'a.yaml', text }])
}

async function check(text: string) {
  const manifests = await read(text)
  return checkObjects(manifests, createTranslator()(manifests.objects))
}

async function outcomes(text: string) {
  return (await check(text)).map(({ kind, key, outcome }) => `${kind} ${key} ${outcome}`)
}

const redirect = `  rules:
    - filters: [{ type: RequestRedirect, requestRedirect: { scheme: https } }]
`

describe('checkObjects', () => {
  it('distinguishes accepted objects from those of other controllers', async () => {
    expect(await outcomes(gateways + route('a', 'web', redirect) + route('b', 'theirs', redirect))).toEqual([
      'Gateway default/theirs foreign',
      'Gateway default/web accepted',
      'GatewayClass other foreign',
      'GatewayClass tollgate accepted',
      'HTTPRoute default/a accepted',
      'HTTPRoute default/b foreign',
    ])
  })

  it('reports routes without a Gateway, and Gateways without a class, as detached', async () => {
    const lost = gateways.replace('gatewayClassName: other', 'gatewayClassName: typo')
    const found = await outcomes(lost + route('a', 'missing', redirect))
    expect(found).toContain('Gateway default/theirs detached')
    expect(found).toContain('HTTPRoute default/a detached')
  })

  it('reports routes with unresolved references as refused', async () => {
    const rules = '  rules:\n    - backendRefs: [{ name: missing, port: 80 }]\n'
    const [found] = (await check(gateways + route('a', 'web', rules))).filter(
      ({ outcome }) => outcome === 'refused',
    )
    expect(found).toMatchObject({ key: 'default/a', place: { file: 'a.yaml', line: 28 } })
    expect(found?.conditions).toContainEqual(
      expect.objectContaining({ of: 'parent Gateway/web', type: 'ResolvedRefs', status: 'False' }),
    )
  })

  it('prints a mistake once if a condition reports it', async () => {
    const policy = `---
apiVersion: tollgate.dev/v1alpha1
kind: GatewayPolicy
metadata: { name: limits }
spec:
  targetRefs: [{ group: gateway.networking.k8s.io, kind: Gateway, name: web }]
  traffic: { rateLimit: { local: {} } }
`
    const report = { errors: [], warnings: [], objects: await check(gateways + policy) }
    expect(reportText(report).match(/spec\.traffic\.rateLimit\.local: expected/g)).toHaveLength(1)
  })

  it('reports objects that violate their schema with their mistakes', async () => {
    const found = await check(`${gateways}${route('a', 'web', '  rules: 1\n')}---
apiVersion: v1
kind: Secret
metadata: { name: key }
stringData: { key: 12345 }
`)
    const invalid = found.filter(({ mistakes }) => mistakes.length > 0)
    expect(invalid.map(({ kind, outcome, mistakes }) => [kind, outcome, mistakes[0]])).toEqual([
      ['HTTPRoute', 'refused', 'spec.rules: expected a list, got a number'],
      ['Secret', 'refused', 'stringData.key: expected a string, got a number; put it in quotes'],
    ])
  })
})

describe('the report', () => {
  it('marks violated conditions, and ends with a summary', async () => {
    const manifests = await read(`${gateways}${route('lost', 'missing')}---\nkind: Thing\n`)
    const objects = checkObjects(manifests, createTranslator()(manifests.objects))
    const report = { ...manifests, objects }
    const text = reportText(report)
    expect(text).toContain('error a.yaml:34: apiVersion: must be a string\n')
    expect(text).toContain('ok       Gateway default/web  (a.yaml:12)\n')
    expect(text).toContain('detached HTTPRoute default/lost  (a.yaml:28)\n')
    expect(text).toMatch(/\nobjects: 5, not accepted: 1, errors: 1, warnings: 0\n$/)
    expect(isAccepted(report)).toBe(false)
    expect(isAccepted({ errors: [], warnings: [], objects: [] })).toBe(true)
  })

  it('contains no values of Secrets as JSON', async () => {
    const manifests = await read(`${gateways}---
apiVersion: v1
kind: Secret
metadata: { name: key }
stringData: { key: hunter2, other: 1 }
`)
    const objects = checkObjects(manifests, createTranslator()(manifests.objects))
    const text = reportJson({ errors: manifests.errors, warnings: manifests.warnings, objects })
    expect(JSON.parse(text)).toMatchObject({ accepted: false })
    expect(text).not.toContain('hunter2')
  })
})
