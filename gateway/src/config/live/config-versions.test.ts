import { expect, it } from 'vitest'
import type { Config } from '../schema.ts'
import { createConfigVersions } from './config-versions.ts'

const texts: Record<string, Config> = {
  first: { config: { adminAddr: '127.0.0.1:1' }, llm: { models: [] } },
  same: { config: { adminAddr: '127.0.0.1:1' }, llm: { models: [] } },
  admin: { config: { adminAddr: '127.0.0.1:2' }, llm: { models: [] } },
  logged: { config: { adminAddr: '127.0.0.1:1', logging: { level: 'warn' } }, llm: { models: [] } },
  recorded: {
    config: { adminAddr: '127.0.0.1:1', logging: { level: 'warn', database: { payloads: true } } },
    llm: { models: [] },
  },
  priced: {
    config: { adminAddr: '127.0.0.1:1', modelCatalog: [{ inline: {} }] },
    llm: { models: [] },
  },
}

function source() {
  const first = texts['first'] ?? {}
  const versions = createConfigVersions({ first, yieldPoint: () => undefined })
  return Object.assign(versions, {
    load: (text: string) => versions.next(structuredClone(texts[text] ?? {})),
  })
}

it('returns the same object for an equal configuration', async () => {
  const file = source()
  expect(await file.load('same')).toBe(file.current)
})

it('retains config.* of the start, and reports that a restart is needed', async () => {
  const file = source()
  const next = await file.load('admin')
  expect(next.config?.adminAddr).toBe('127.0.0.1:1')
  expect(next.llm).toBe(file.current.llm)
  expect(file.accept(next)).toBe(true)
  expect(file.current).toBe(next)
})

it('applies model prices and the log level without a restart, and removes them', async () => {
  const file = source()
  const priced = await file.load('priced')
  expect(priced.config).toEqual(texts['priced']?.config)
  expect(file.accept(priced)).toBe(false)
  const logged = await file.load('logged')
  expect(logged.config).toEqual(texts['logged']?.config)
  expect(file.accept(logged)).toBe(false)
  const back = await file.load('same')
  expect(back.config).toEqual({ adminAddr: '127.0.0.1:1' })
})

it('retains the settings of the ledger, and reports that a restart is needed', async () => {
  const file = source()
  const recorded = await file.load('recorded')
  expect(recorded.config).toEqual(texts['logged']?.config)
  expect(file.accept(recorded)).toBe(true)
  const logged = await file.load('logged')
  expect(file.accept(logged)).toBe(true)
})

it('rejects a configuration that was not loaded last', async () => {
  const file = source()
  const one = await file.load('admin')
  await file.load('priced')
  expect(() => file.accept(one)).toThrow('another configuration was loaded meanwhile')
})
