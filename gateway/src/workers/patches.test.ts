import { expect, it } from 'vitest'
import type { Config } from '../config/schema.ts'
import { createPatches } from './patches.ts'

const config: Config = { llm: { models: [] } }
const next: Config = { ...config, mcp: { targets: [] } }

it('creates a patch once for data planes with the same configuration', () => {
  const patchOf = createPatches(() => false)
  const first = patchOf(config, next)
  expect(patchOf(config, next)).toBe(first)
  expect(patchOf(undefined, next)).not.toEqual(first)
  expect(patchOf(config, config)).not.toEqual(first)
})
