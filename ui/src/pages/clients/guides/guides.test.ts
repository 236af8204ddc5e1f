import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { applicationGuides } from './application-guides.ts'
import { codeGuides } from './code-guides.ts'
import { mcpGuides } from './mcp-guides.ts'

const guides = [...codeGuides, ...applicationGuides, ...mcpGuides]
const context = { address: 'http://localhost:4000', model: 'gpt-5', key: 'tg-1' }

describe.each(guides.map((guide) => [guide.id, guide] as const))('the guide %s', (_, guide) => {
  it('contains the address, and the key where it is entered', () => {
    const text = guide
      .steps(context)
      .map(({ code }) => code)
      .join('\n')
    expect(text).toMatch(/localhost:4000|host\.docker\.internal:4000/)
    if (!['mcp-vscode'].includes(guide.id)) expect(text).toContain('tg-1')
  })

  it('contains a variable or a placeholder without a key', () => {
    const text = guide
      .steps({ ...context, key: undefined })
      .map(({ code }) => code)
      .join('\n')
    expect(text).not.toContain('undefined')
    expect(text).toMatch(/TOLLGATE_API_KEY|YOUR_TOLLGATE_KEY|tollgate-key/)
  })

  it('has valid JSON in JSON files', () => {
    for (const { place = '', code } of guide.steps(context))
      if (place.includes('.json')) expect(parse(code)).toBeTypeOf('object')
  })
})

it('ids are unique', () => {
  expect(new Set(guides.map(({ id }) => id)).size).toBe(guides.length)
})
