import { expect, it } from 'vitest'
import { type ProcessEntry, parseStat, residentKibibytes, treeOf } from './process-tree.ts'

/** A line of /proc/PID/stat: fields 1 to 17, then some more. */
function stat(name: string, ticks: readonly [number, number, number, number]): string {
  return `4711 (${name}) S 12 4711 40 0 -1 4194304 9 8 7 6 ${ticks.join(' ')} 20 0 1 0 12345`
}

const entry = (id: number, parent: number, session = 1, ticks = 1): ProcessEntry => ({
  id,
  parent,
  session,
  ticks,
})

it('a stat line yields parent, session and the time of the process and its ended children', () => {
  expect(parseStat(stat('node', [100, 20, 3, 4]))).toEqual({ id: 4711, parent: 12, session: 40, ticks: 127 })
})

it('a process name with spaces and parentheses does not move the fields', () => {
  expect(parseStat(stat('a) S 1 (b', [1, 2, 3, 4]))).toEqual({ id: 4711, parent: 12, session: 40, ticks: 10 })
})

it.each(['', '4711 (node) S 12', '4711 (node', stat('node', [1, 2, 3, 4]).slice(0, 45)])(
  'the stat line %j of an ended process is ignored',
  (text) => {
    expect(parseStat(text)).toBeUndefined()
  },
)

it('a tree contains descendants of every depth and no siblings', () => {
  const processes = [entry(1, 0), entry(10, 1), entry(11, 10), entry(12, 11), entry(20, 1), entry(21, 20)]
  expect(idsOf(treeOf(10, processes))).toEqual([10, 11, 12])
})

it('the tree of a session leader contains processes whose parent has ended', () => {
  const processes = [entry(1, 0), entry(10, 1, 10), entry(11, 1, 10), entry(12, 11, 12), entry(13, 1, 13)]
  expect(idsOf(treeOf(10, processes))).toEqual([10, 11, 12])
})

it('a tree is empty once its root has ended', () => {
  expect(treeOf(99, [entry(1, 0), entry(10, 1)])).toEqual([])
})

it('resident memory is read from the status file, and is 0 for a process without one', () => {
  expect(residentKibibytes('Name:\tnode\nVmHWM:\t  900 kB\nVmRSS:\t    512 kB\nRssAnon:\t 1 kB\n')).toBe(512)
  expect(residentKibibytes('')).toBe(0)
})

function idsOf(processes: readonly ProcessEntry[]): number[] {
  return processes.map(({ id }) => id).toSorted((a, b) => a - b)
}
