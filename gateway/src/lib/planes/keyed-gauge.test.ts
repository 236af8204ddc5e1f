import { afterEach, describe, expect, it } from 'vitest'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { createPlaneThreads, type PlaneThreads } from '../../../test/support/plane-threads.ts'
import { createGauge } from './gauge.ts'
import { createKeyedGauge, type Entry } from './keyed-gauge.ts'
import { createLocalMemory, type Memory, regionOf } from './memory.ts'

const module = new URL('../../../test/fixtures/gauge-tasks.ts', import.meta.url)

let threads: PlaneThreads | undefined
afterEach(() => threads?.close())

/** A gauge of ten keys with at most two entries each, three in total. */
function gaugeOf(memory: Memory, { max = 2, maxTotal = 3 } = {}) {
  const total = createGauge(memory, 'total')
  const gauge = createKeyedGauge(memory, 'gauge', 10)
  return { ...gauge, total, open: (key: string) => gauge.open(key, { max, total, maxTotal }) }
}

function entryOf(opened: ReturnType<ReturnType<typeof gaugeOf>['open']> | undefined): Entry {
  if (opened?.kind !== 'open') throw new Error(`an open entry expected, got ${opened?.kind}`)
  return opened.entry
}

describe('a gauge by key', () => {
  it('reports the limit that an entry would exceed', () => {
    const { open, countOf, total } = gaugeOf(createLocalMemory())
    const opened = ['a', 'a', 'a', 'b', 'c', 'a'].map((key) => open(key))
    expect(opened.map(({ kind }) => kind)).toEqual(['open', 'open', 'key', 'open', 'total', 'key'])
    entryOf(opened[0]).close()
    total.subtract(1)
    expect([open('c').kind, open('a').kind]).toEqual(['open', 'total'])
    expect([countOf('a'), countOf('b'), countOf('d'), total.total()]).toEqual([1, 1, 0, 3])
  })

  it('has room for its number of keys in use', () => {
    const { open, total } = gaugeOf(createLocalMemory(), { maxTotal: 100 })
    for (let round = 0; round < 50; round++) {
      const entries = Array.from({ length: 10 }, (_, key) => entryOf(open(`${round} ${key}`)))
      expect([open('further').kind, total.total()]).toEqual(['key', 10])
      for (const entry of entries) {
        entry.close()
        total.subtract(1)
      }
    }
    expect(open('further').kind).toBe('open')
  })

  it('limits the amount of a key over data planes', () => {
    const [one, other] = createPlaneMemories(2).map((memory) => entryOf(gaugeOf(memory).open('a')))
    expect([one?.tryAdd(3, 5), other?.tryAdd(3, 5), other?.tryAdd(2, 5)]).toEqual([true, false, true])
    one?.subtract(3)
    expect([other?.tryAdd(3, 5), one?.tryAdd(1, 5)]).toEqual([true, false])
  })

  it('counts the entries of all data planes', () => {
    const [one, other] = createPlaneMemories(2).map((memory) => gaugeOf(memory))
    expect([one?.open('a').kind, other?.open('a').kind, one?.open('a').kind]).toEqual(['open', 'open', 'key'])
    expect([one?.countOf('a'), other?.countOf('a')]).toEqual([2, 2])
  })

  it('never exceeds a limit over threads', async () => {
    threads = createPlaneThreads(4)
    const request = { rounds: 6_000, keys: 3, max: 4, maxTotal: 9 }
    const highest = (await threads.runAll({ module, task: 'claimKeys' }, request)) as number[][]
    const most = [0, 1, 2, 3].map((index) => Math.max(...highest.map((of) => of[index] ?? 0)))
    expect(Math.max(...most.slice(0, 3))).toBe(4)
    expect(most[3]).toBeLessThanOrEqual(9)
    expect([...regionOf(threads.buffer('gauge/total')).int32]).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  it('never exceeds the amount of a key over threads', async () => {
    threads = createPlaneThreads(4)
    const highest = (await threads.runAll(
      { module, task: 'claimAmount' },
      { rounds: 10_000, max: 2 },
    )) as number[]
    expect(Math.max(...highest)).toBeLessThanOrEqual(2)
  })

  it('loses the entries and amounts of a failed data plane with its replacement', () => {
    const [first, second] = createPlaneMemories(2)
    if (first === undefined || second === undefined) throw new Error('two data planes expected')
    const one = gaugeOf(first)
    const entry = entryOf(one.open('a'))
    const failed = gaugeOf(second)
    expect(entryOf(failed.open('a')).tryAdd(5, 5)).toBe(true)
    expect(failed.open('b').kind).toBe('open')
    expect(entry.tryAdd(1, 5)).toBe(false)
    const replacement = gaugeOf(second)
    expect([replacement.countOf('a'), replacement.countOf('b'), one.countOf('b')]).toEqual([1, 0, 0])
    expect(entry.tryAdd(5, 5)).toBe(true)
  })
})
