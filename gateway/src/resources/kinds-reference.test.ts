import { describe, expect, it } from 'vitest'
import { renderConfigReference } from '../config/config-reference.ts'
import { configSchema } from '../config/schema.ts'
import { kinds, policyFields } from './kinds.ts'
import { renderKindsReference } from './kinds-reference.ts'

const configReference = renderConfigReference(configSchema)
const reference = renderKindsReference(configReference)

function sectionOf(kind: string): string {
  const [, text = ''] = reference.split(`\n## \`${kind}\`\n`)
  return text.split('\n## ')[0] ?? ''
}

describe('the reference of kinds', () => {
  it.each(kinds.map((kind) => [kind.name, kind] as const))('has a row and a section for %s', (name, kind) => {
    expect(reference.split('\n').filter((line) => line.startsWith(`| [\`${name}\`](#`))).toHaveLength(1)
    expect(sectionOf(name)).toContain(kind.doc)
    for (const field of policyFields(kind)) expect(sectionOf(name)).toContain(`\`${field}\``)
  })

  it('links to existing headings of the configuration reference', () => {
    const slugs = new Set(
      [...configReference.matchAll(/^## (.*)$/gm)].map(([, text = '']) =>
        text.toLowerCase().replace(/[^\w-]/g, ''),
      ),
    )
    const targets = [...reference.matchAll(/config\.md#([\w-]+)/g)].map(([, target = '']) => target)
    expect(targets.length).toBeGreaterThanOrEqual(kinds.length)
    expect(targets.filter((target) => !slugs.has(target))).toEqual([])
  })

  it('links to the nearest parent without a section for the path', () => {
    expect(renderKindsReference('## `llm`\n')).toContain('[`llm.models[]`](config.md#llm)')
    expect(renderKindsReference('')).toContain('as in `llm.models[]`.')
  })

  it('lists creation by address and requirements', () => {
    expect(sectionOf('llm.policy')).toContain('PUT /api/config/resources/llm.policy/{policy}` creates')
    expect(sectionOf('llm.policy')).toContain('must have the section `llm`')
    expect(sectionOf('llm.apiKey')).toContain('Requires the policy `llm.policies.apiKey`')
    expect(sectionOf('mcp.policy')).not.toContain('must have the section')
  })
})
