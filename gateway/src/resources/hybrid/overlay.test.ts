import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { namedId } from '../change/identity.ts'
import { findKind, kinds, policyFields, shapesOf } from '../kinds.ts'
import type { StoreDelta, StoredResource } from '../stores/store.ts'
import { overlay } from './overlay.ts'
import { toStored } from './record.ts'
import { emptyIndex, type RecordIndex, updateIndex } from './record-index.ts'

const plain = (value: unknown) => ({ value: value as never, missing: [] })

let moment = 0
function record(kind: string, name: string, value: object): StoredResource {
  const found = findKind(kind)
  if (found === undefined) throw new Error(`no kind ${kind}`)
  moment += 1
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, moment)).toISOString()
  const id = kind === 'llm.apiKey' ? name : namedId(kind, name)
  return { kind, id, value: toStored(found, name, value as never), revision: 1, createdAt: at, updatedAt: at }
}

function delta(changed: readonly StoredResource[], rest: Partial<StoreDelta> = {}): StoreDelta {
  return { changed, unreadable: [], removed: [], generation: 1, complete: false, ...rest }
}

const know = (...records: StoredResource[]): RecordIndex =>
  updateIndex(emptyIndex, delta(records, { complete: true }), plain)

describe('kinds', () => {
  it('have a place in the configuration and a schema there', () => {
    for (const kind of kinds) {
      const name = kind.placement.kind === 'policies' ? 'cors' : 'x'
      expect(shapesOf(kind, name), kind.name).not.toEqual([])
    }
    expect(policyFields(findKind('llm.policy') ?? kinds[0] ?? ({} as never))).toContain('apiKey')
  })

  it('have stable ids for names', () => {
    expect(namedId('llm.model', 'm')).toBe('11c5b933-0d05-5db0-a618-c89a2c13d710')
    expect(namedId('llm.policy', 'cors')).toBe('18686791-4907-5164-b1bf-f0ff4f60f346')
    expect(namedId('a', 'b.c')).not.toBe(namedId('a.b', 'c'))
  })
})

describe('an overlay', () => {
  it('equals the file if the database is empty', () => {
    const file = { llm: { models: [] } }
    const { config, keyless } = overlay(file, emptyIndex)
    expect(config).toEqual(file)
    expect(config['llm']).toBe(file.llm)
    expect(keyless).toBe(config)
  })

  it('inserts each kind at its place, after the entries of the file', () => {
    const file = {
      config: { modelCatalog: [{ file: 'prices.json' }] },
      llm: { models: [{ name: 'f' }], policies: { apiKey: { keys: [{ key: 'f' }] } } },
      ui: { gateways: 'g' },
    }
    const { config, keyless } = overlay(
      file,
      know(
        record('modelCatalog', 'default', { base: { a: 1 }, custom: { b: 2 } }),
        record('llm.provider', 'p', { name: 'p' }),
        record('llm.model', 'i', { name: 'm', id: 'i' }),
        record('llm.virtualModel', 'v', { name: 'v' }),
        record('llm.apiKey', '11111111-1111-4111-8111-111111111111', { key: 'd' }),
        record('llm.policy', 'cors', { allowOrigins: [] }),
        record('mcp.target', 't', { name: 't' }),
        record('mcp.policy', 'localRateLimit', [{ requests: 1 }]),
        record('mcp.settings', 'default', { port: 1 }),
        record('traffic.gateway', 'g', { name: 'g', port: 2 }),
        record('traffic.route', 'r', { name: 'r' }),
        record('traffic.tcpRoute', 'r', { name: 'r' }),
        record('ui.policy', 'cors', { allowOrigins: ['*'] }),
      ),
    )
    const key = { key: 'd', metadata: { id: '11111111-1111-4111-8111-111111111111' } }
    expect(config).toEqual({
      config: { modelCatalog: [{ inline: { a: 1 } }, { inline: { b: 2 } }, { file: 'prices.json' }] },
      llm: {
        models: [{ name: 'f' }, { name: 'm', id: 'i' }],
        providers: [{ name: 'p' }],
        virtualModels: [{ name: 'v' }],
        policies: { apiKey: { keys: [{ key: 'f' }, key] }, cors: { allowOrigins: [] } },
      },
      mcp: { targets: [{ name: 't' }], policies: { localRateLimit: [{ requests: 1 }] }, port: 1 },
      gateways: { g: { port: 2 } },
      routes: [{ name: 'r' }],
      tcpRoutes: [{ name: 'r' }],
      ui: { gateways: 'g', policies: { cors: { allowOrigins: ['*'] } } },
    })
    expect(keyless).toMatchObject({ llm: { policies: { apiKey: { keys: [] } } } })
  })

  it('does not change the file or an earlier overlay', () => {
    const file = { llm: { models: [{ name: 'f' }], policies: {} } }
    const copy = structuredClone(file)
    const one = overlay(file, know(record('llm.model', 'm', { name: 'm' })))
    const before = structuredClone(one.config)
    overlay(file, know(record('llm.model', 'n', { name: 'n' }), record('llm.policy', 'cors', {})), one.config)
    expect(file).toEqual(copy)
    expect(one.config).toEqual(before)
  })

  it('shares unchanged parts with the earlier one', () => {
    const file = { llm: { models: [{ name: 'f' }] }, routes: [{ name: 'f' }] }
    const known = know(record('llm.model', 'm', { name: 'm' }), record('traffic.route', 'r', { name: 'r' }))
    const one = overlay(file, known).config
    expect(overlay(file, known, one).config).toBe(one)
    const more = updateIndex(known, delta([record('traffic.route', 's', { name: 's' })]), plain)
    const two = overlay(file, more, one).config
    expect(two['llm']).toBe(one['llm'])
    expect(two['routes']).not.toBe(one['routes'])
  })

  it('does not create a section for a policy alone', () => {
    const known = know(record('llm.policy', 'cors', {}), record('ui.policy', 'cors', {}))
    expect(overlay({}, known).config).toEqual({})
  })

  it('does not set a prototype by name', () => {
    const stored = record('traffic.gateway', '__proto__', { name: '__proto__', port: 1 })
    const known = know(stored)
    expect(known.ordered).toEqual([])
    expect(overlay({}, known).refusals).toHaveLength(1)
  })
})

describe('the record index', () => {
  it('is equal after single deltas, one delta and a full read', () => {
    const ids = Array.from({ length: 6 }, (_, index) => `00000000-0000-4000-8000-00000000000${index}`)
    const step = fc.record({ id: fc.constantFrom(...ids), key: fc.option(fc.nat(3)), bulk: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        let known = know()
        const rows = new Map<string, StoredResource>()
        for (const { id, key, bulk } of steps) {
          if (key === null) {
            rows.delete(id)
            known = updateIndex(known, delta([], { removed: [{ kind: 'llm.apiKey', id }] }), plain)
            continue
          }
          const before = rows.get(id)
          const made = record('llm.apiKey', id, { key: `${id} ${key}` })
          const row = {
            ...made,
            revision: (before?.revision ?? 0) + 1,
            createdAt: before?.createdAt ?? made.createdAt,
          }
          rows.set(id, row)
          known = updateIndex(
            known,
            bulk ? delta([...rows.values()], { complete: true }) : delta([row]),
            plain,
          )
        }
        const items = new Map(known.keyItems.map(({ key, metadata }) => [metadata?.['id'], key]))
        expect(items).toEqual(new Map([...rows].map(([id, { value }]) => [id, value['key']])))
        expect(known.keyItems).toHaveLength(rows.size)
        expect(known.keysById.size).toBe(rows.size)
        expect(known.keysByDigest.size).toBe(rows.size)
      }),
    )
  })

  it('retains the objects of unchanged records, also after a full read', () => {
    const rows = [
      record('llm.apiKey', '11111111-1111-4111-8111-111111111111', { key: 'a' }),
      record('llm.model', 'm', { name: 'm' }),
    ]
    const known = know(...rows)
    const again = updateIndex(known, delta(structuredClone(rows), { complete: true, generation: 2 }), plain)
    expect(again.keyItems[0]).toBe(known.keyItems[0])
    expect(again.ordered).toBe(known.ordered)
    const gone = updateIndex(again, delta([], { complete: true, generation: 3 }), plain)
    expect([gone.ordered, gone.keyItems, gone.keysById.size]).toEqual([[], [], 0])
  })

  it.each([
    ['llm.apiKey', '11111111-1111-4111-8111-111111111111', { key: '' }, false],
    ['llm.apiKey', '11111111-1111-4111-8111-111111111111', { keyHash: 'md5:1' }, false],
    ['llm.model', namedId('llm.model', 'x'), { provider: 'echo' }, true],
    ['llm.policy', namedId('llm.policy', 'x'), { name: 'cors', policy: {} }, true],
    ['llm.policy', namedId('llm.policy', 'cors'), { name: 'cors' }, true],
    ['llm.future', 'x', {}, false],
  ])('rejects a record of %s with id %s and value %j', (kind, id, value, blocking) => {
    const at = '2026-01-01T00:00:00.000Z'
    const known = know({ kind, id, value, revision: 1, createdAt: at, updatedAt: at })
    expect([...known.problems.values()]).toMatchObject([{ kind, id, blocking }])
    expect(overlay({}, known).refusals).toHaveLength(blocking ? 1 : 0)
    const gone = updateIndex(known, delta([], { removed: [{ kind, id }] }), plain)
    expect(gone.problems.size).toBe(0)
  })

  it('has unreadable records as problems until they are readable', () => {
    const row = record('llm.policy', 'cors', { allowOrigins: [] })
    const { value: _, ...rest } = row
    const known = updateIndex(
      emptyIndex,
      delta([], { unreadable: [{ ...rest, reason: 'encrypted' }], complete: true }),
      plain,
    )
    expect(overlay({}, known).refusals[0]).toContain('encrypted')
    expect(overlay({}, updateIndex(known, delta([row]), plain)).refusals).toEqual([])
  })
})
