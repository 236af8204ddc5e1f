import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createManifestReader } from '../../objects/manifests/manifests.ts'
import { parseManifest } from '../../objects/manifests/parse-manifest.ts'
import { llmFields } from '../../own-kinds/backend-settings.ts'
import { createReferences } from '../backends/references.ts'
import { fieldKinds } from './fields/fields.ts'
import { createLookups, surroundingsOf } from './lookups.ts'
import { translatePolicy } from './translate-policy.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../../docs/kubernetes-policies.md'), 'utf8')
const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text)

describe('the page of GatewayPolicy', () => {
  it.each(blocks.map((text) => [/name: (\S+)/.exec(text)?.[1], text] as const))(
    'has a valid %s',
    async (_, text) => {
      const read = createManifestReader({ parse: parseManifest, yieldPoint: () => undefined })
      const { objects, errors } = await read([{ name: 'page.yaml', text }])
      expect(errors).toEqual([])
      expect([...objects.invalid.values()]).toEqual([])
      for (const policy of objects.GatewayPolicy.values()) {
        const lookups = createLookups('default', surroundingsOf(objects, createReferences(objects)))
        const { fields, mistakes } = translatePolicy(policy, lookups)
        expect(mistakes).toEqual([])
        expect(fields.flatMap(({ kind, mistakesFor }) => kind.traffic.flatMap(mistakesFor))).toEqual([])
      }
    },
  )

  it('has a translation of every field of LLM requests', () => {
    const paths = new Set(fieldKinds.map(({ path }) => path))
    expect(Object.keys(llmFields).filter((name) => !paths.has(`backend.ai.${name}`))).toEqual([])
  })

  it('lists every field', () => {
    expect(fieldKinds.filter(({ path }) => !page.includes(`\`${path}`)).map(({ path }) => path)).toEqual([])
  })
})
