import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../test/fixtures/pipeline.ts'
import { createKeyIndex } from './key-index.ts'
import { type ApiKeyRecord, digestOf } from './record.ts'

function record(key: string, name = key): ApiKeyRecord {
  return { key, metadata: { name } }
}

describe('createKeyIndex', () => {
  it('finds the same entries as a plain map after any sequence of lists', () => {
    const change = fc.record({
      op: fc.constantFrom('append', 'remove', 'replace', 'insert'),
      key: fc.integer({ min: 0, max: 40 }),
      at: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const context = fixtureContext()
        let records: ApiKeyRecord[] = []
        let version = 0
        for (const { op, key, at } of changes) {
          const text = `key-${key}`
          const others = records.filter((one) => one.key !== text)
          const place = others.length === 0 ? 0 : at % (others.length + 1)
          const fresh = record(text, `v${version++}`)
          if (op === 'remove') records = others
          else if (op === 'append') records = [...others, fresh]
          else records = others.toSpliced(place, 0, fresh)
          const { find } = createKeyIndex(records, context, 'llm')
          for (let number = 0; number <= 40; number++) {
            const wanted = records.find((one) => one.key === `key-${number}`)
            expect(find(digestOf(`key-${number}`))?.facts['name']).toBe(wanted?.metadata?.['name'])
          }
        }
      }),
      { numRuns: 50 },
    )
  })

  it('leaves an index alone that requests under way still use', () => {
    const context = fixtureContext()
    const one = record('one')
    const two = record('two')
    const before = createKeyIndex([one, two], context, 'llm')
    const after = createKeyIndex([two, record('three')], context, 'llm')
    expect([before.find(digestOf('one')), before.find(digestOf('three'))].map(Boolean)).toEqual([true, false])
    expect([after.find(digestOf('one')), after.find(digestOf('three'))].map(Boolean)).toEqual([false, true])
  })

  it('keeps the entry of a record that a change leaves alone', () => {
    const context = fixtureContext()
    const records = Array.from({ length: 50 }, (_, number) => record(`key-${number}`))
    const before = createKeyIndex(records, context, 'llm')
    const after = createKeyIndex(records.slice(1), context, 'llm')
    for (const { key = '' } of records.slice(1)) {
      expect(after.find(digestOf(key))).toBe(before.find(digestOf(key)))
    }
  })

  it('joins many small changes into a new base without losing one', () => {
    const context = fixtureContext()
    let records: ApiKeyRecord[] = []
    for (let number = 0; number < 5_000; number++) {
      records = [...records, record(`key-${number}`)]
      if (number % 7 === 0) records = records.slice(1)
      createKeyIndex(records, context, 'llm')
    }
    const { find } = createKeyIndex(records, context, 'llm')
    const left = new Set(records.map(({ key }) => key))
    for (let number = 0; number < 5_000; number++) {
      expect(find(digestOf(`key-${number}`)) !== undefined).toBe(left.has(`key-${number}`))
    }
  })

  it('keeps all entries but those of many changes far apart', () => {
    const context = fixtureContext()
    const records = Array.from({ length: 10_000 }, (_, number) => record(`key-${number}`))
    const before = createKeyIndex(records, context, 'llm')
    const changed = records.flatMap((one, number) => {
      if (number % 500 === 1) return []
      if (number % 500 === 2) return [record(one.key ?? '', 'again'), record(`key-new-${number}`)]
      return number > 3_100 && number < 3_150 ? [] : [one]
    })
    const after = createKeyIndex(changed, context, 'llm')
    const kept = changed.filter(({ key = '' }) => after.find(digestOf(key)) === before.find(digestOf(key)))
    expect(kept).toHaveLength(changed.length - 40)
    for (const { key = '', metadata } of changed) {
      expect(after.find(digestOf(key))?.facts['name']).toBe(metadata?.['name'])
    }
    expect(after.find(digestOf('key-1'))).toBeUndefined()
    expect(after.find(digestOf('key-3101'))).toBeUndefined()
  })

  it('is built from one that never ran as well as from any other', () => {
    const context = fixtureContext()
    const [one, two] = [record('one'), record('two')]
    const running = createKeyIndex([one], context, 'llm')
    createKeyIndex([two], context, 'llm')
    const next = createKeyIndex([one, record('three')], context, 'llm')
    expect(['one', 'two', 'three'].map((key) => next.find(digestOf(key)) !== undefined)).toEqual([
      true,
      false,
      true,
    ])
    expect(['one', 'two'].map((key) => running.find(digestOf(key)) !== undefined)).toEqual([true, false])
  })
})
