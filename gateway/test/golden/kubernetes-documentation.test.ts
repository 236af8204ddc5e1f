import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { validateConfig } from '../../src/config/load/validate.ts'
import { createManifestReader } from '../../src/kubernetes/objects/manifests/manifests.ts'
import { parseManifest } from '../../src/kubernetes/objects/manifests/parse-manifest.ts'
import type { ObjectStatus } from '../../src/kubernetes/translate/status/object-status.ts'
import { createTranslator } from '../../src/kubernetes/translate/translate.ts'

// The objects of each page about Kubernetes are valid together, in a cluster with the class `tollgate`.

const docs = join(import.meta.dirname, '../../../docs')
const pages = readdirSync(docs).filter((page) => /^kubernetes-(?:llm|mcp|tenancy)\.md$/.test(page))

const gatewayClass = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: tollgate }
spec: { controllerName: tollgate.dev/controller }
`

/** Conditions whose normal status is False. */
const negative = new Set(['Conflicted', 'OverlappingTLSConfig', 'InsecureFrontendValidationMode'])

async function translationOf(page: string) {
  const text = readFileSync(join(docs, page), 'utf8')
  const blocks = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block)
  expect(blocks.length).toBeGreaterThan(1)
  const read = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
  const { objects, errors, warnings } = await read([
    { name: page, text: [gatewayClass, ...blocks].join('---\n') },
  ])
  expect([...errors, ...warnings, ...objects.invalid.values()]).toEqual([])
  return createTranslator()(objects)
}

/** Lists of conditions of an object, one for each parent, ancestor or listener. */
function conditionsOf(status: ObjectStatus) {
  switch (status.of) {
    case 'route':
      return status.status.parents.map(({ conditions }) => conditions)
    case 'policy':
      return status.status.ancestors.map(({ conditions }) => conditions)
    case 'gateway':
      return [status.status, ...(status.status.listeners ?? [])].map(({ conditions = [] }) => conditions)
    case 'conditions':
      return [status.status.conditions]
  }
}

describe('the pages about Kubernetes', () => {
  it('are found', () => {
    expect(pages).toHaveLength(3)
  })

  it.each(pages)('%s has objects that are accepted, attached and resolved', async (page) => {
    const { gateways, statuses } = await translationOf(page)
    for (const { config } of gateways.values()) expect(validateConfig(config)).toEqual([])
    for (const status of statuses) {
      const lists = conditionsOf(status)
      expect(lists.length, `${status.kind} ${status.key}`).toBeGreaterThan(0)
      const problems = lists.flat().filter(({ type, status: is }) => is !== 'True' && !negative.has(type))
      expect(problems, `${status.kind} ${status.key}`).toEqual([])
    }
  })

  it('have guards that call their Service', async () => {
    const { gateways } = await translationOf('kubernetes-llm.md')
    const text = JSON.stringify(gateways.get('ai/web')?.config.routes)
    expect(text).toContain('"target":{"backend":"/Service/ai/guardrail:8000"}')
  })
})
