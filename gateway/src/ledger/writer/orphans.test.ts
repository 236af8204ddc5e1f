import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createOrphans, distinct } from './orphans.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orphans-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const own = '11111111-1111-4111-8111-111111111111'
const other = '22222222-2222-4222-8222-222222222222'

function orphansOf(source: string, owner: { host: string; pid: number }, running: readonly number[] = []) {
  const place = { folder, prefix: 'db' }
  return createOrphans({ place, source, owner, isRunning: (pid) => running.includes(pid) })
}

/** Makes the heartbeat of the other process older. */
function age(seconds: number): void {
  const time = Date.now() / 1_000 - seconds
  utimesSync(join(folder, `db-${other}.alive`), time, time)
}

describe('the search for ended processes', () => {
  it.each([
    ['a process of this host that runs', { host: 'a', pid: 2 }, [2], 0, false],
    ['a process of this host that has ended', { host: 'a', pid: 2 }, [], 0, true],
    [
      'a process with the id of this one, before a restart of the container',
      { host: 'a', pid: 1 },
      [1],
      0,
      true,
    ],
    ['an id that another process has for hours', { host: 'a', pid: 2 }, [2], 7_200, true],
    ['a process of another host with a heartbeat', { host: 'b', pid: 2 }, [], 5, false],
    ['a process of another host without a heartbeat', { host: 'b', pid: 2 }, [2], 60, true],
  ])('of %s', (_name, owner, running, ageSeconds, isFound) => {
    orphansOf(other, owner).beat()
    const orphans = orphansOf(own, { host: 'a', pid: 1 }, running)
    orphans.beat()
    age(ageSeconds)
    expect(orphans.find()).toEqual(isFound ? [other] : [])
  })

  it('finds spool files without a heartbeat file, or with a damaged one', () => {
    const orphans = orphansOf(own, { host: 'a', pid: 1 })
    orphans.beat()
    writeFileSync(join(folder, `db-${other}-x-00000001.spool`), '')
    expect(orphans.find()).toEqual([other])
    writeFileSync(join(folder, `db-${other}.alive`), '{')
    expect(orphans.find()).toEqual([other])
  })

  it('ignores files of other databases, and other files', () => {
    const orphans = orphansOf(own, { host: 'a', pid: 1 })
    orphans.beat()
    writeFileSync(join(folder, `other-${other}-x-00000001.spool`), '')
    writeFileSync(join(folder, 'db-notes.txt'), '')
    expect(orphans.find()).toEqual([])
  })
})

it('records that are part of a compacted one are removed, and every number remains once', () => {
  const range = fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 5 }))
  fc.assert(
    // Compaction replaces the numbers first..last of single records; both may be in the files.
    fc.property(fc.integer({ min: 1, max: 30 }), fc.array(range, { maxLength: 1 }), (count, compacted) => {
      const removed: number[] = []
      const record = (first: number, number: number) => ({
        first,
        number,
        rows: 1,
        size: 1,
        read: () => Buffer.alloc(0),
        remove: () => void removed.push(number),
      })
      const singles = Array.from({ length: count }, (_, index) => record(index + 1, index + 1))
      const ranges = compacted
        .filter(([first]) => first <= count)
        .map(([first, more]) => record(first, Math.min(first + more, count)))
      const kept = distinct([...singles, ...ranges])
      const numbers = kept.flatMap(({ first, number }) =>
        Array.from({ length: number - first + 1 }, (_, index) => first + index),
      )
      expect(numbers).toEqual(singles.map(({ number }) => number))
      expect(removed.length + kept.length).toBe(singles.length + ranges.length)
    }),
  )
})
