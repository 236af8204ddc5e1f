import { expect, it } from 'vitest'
import type { Config } from '../schema.ts'
import { createFileSource } from './file-source.ts'

const texts: Record<string, Config> = {
  first: { config: { adminAddr: '127.0.0.1:1' }, llm: { models: [] } },
  same: { config: { adminAddr: '127.0.0.1:1' }, llm: { models: [] } },
  admin: { config: { adminAddr: '127.0.0.1:2' }, llm: { models: [] } },
  priced: {
    config: { adminAddr: '127.0.0.1:1', modelCatalog: [{ inline: {} }] },
    llm: { models: [] },
  },
}

function source() {
  const first = texts['first'] ?? {}
  return createFileSource({
    first,
    read: async (text) => structuredClone(texts[text] ?? {}),
    breathe: () => undefined,
  })
}

it('is the same object where a text says the same', async () => {
  const file = source()
  expect(await file.load('same')).toBe(file.current)
})

it('keeps config.* as it was at the start, and tells that a restart is needed', async () => {
  const file = source()
  const next = await file.load('admin')
  expect(next.config?.adminAddr).toBe('127.0.0.1:1')
  expect(next.llm).toBe(file.current.llm)
  expect(file.accept(next)).toBe(true)
  expect(file.current).toBe(next)
})

it('follows the prices of models without a restart, and forgets them when they are gone', async () => {
  const file = source()
  const priced = await file.load('priced')
  expect(priced.config).toEqual(texts['priced']?.config)
  expect(file.accept(priced)).toBe(false)
  const back = await file.load('same')
  expect(back.config).toEqual({ adminAddr: '127.0.0.1:1' })
})

it('does not take on what was not loaded last', async () => {
  const file = source()
  const one = await file.load('admin')
  await file.load('priced')
  expect(() => file.accept(one)).toThrow('another configuration was loaded meanwhile')
})
