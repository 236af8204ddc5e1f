import { readdirSync, readFileSync } from 'node:fs'

/** One process of /proc. Times are in clock ticks and include ended children that were waited for. */
export type ProcessEntry = { id: number; parent: number; session: number; ticks: number }

const ticksPerSecond = 100

/** Parses /proc/PID/stat (proc(5)); undefined if the text is cut off. */
export function parseStat(stat: string): ProcessEntry | undefined {
  // The process name may contain spaces and parentheses, so fields count from its last closing parenthesis:
  // state is 3, ppid 4, session 6, utime 14, stime 15, cutime 16, cstime 17.
  const end = stat.lastIndexOf(')')
  const fields = stat
    .slice(end + 2)
    .split(' ')
    .map(Number)
  const [parent, session] = [fields[1], fields[3]]
  const ticks = fields.slice(11, 15)
  const entry = { id: Number.parseInt(stat, 10), parent, session, ticks: sum(ticks) }
  const { id } = entry
  if (end === -1 || parent === undefined || session === undefined || ticks.length < 4) return undefined
  if (![id, parent, session, entry.ticks].every(Number.isInteger)) return undefined
  return { id, parent, session, ticks: entry.ticks }
}

/**
 * Processes of the tree below `root`, itself included. If the root leads a session, the tree includes the
 * session, so that processes whose parent has ended are counted as well.
 */
export function treeOf(root: number, processes: readonly ProcessEntry[]): ProcessEntry[] {
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const found = new Map<number, ProcessEntry>()
  const pending = processes.filter(({ id, session }) => id === root || session === root)
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (found.has(next.id)) continue
    found.set(next.id, next)
    pending.push(...(children.get(next.id) ?? []))
  }
  return [...found.values()]
}

/** CPU time of all processes of a tree, in microseconds. Every ended child counts in its parent. */
export function treeCpuMicroseconds(root: number): number {
  return (sum(treeOf(root, readProcesses()).map(({ ticks }) => ticks)) * 1_000_000) / ticksPerSecond
}

/** Resident memory of all processes of a tree, in MiB. Pages that several processes share count in each. */
export function treeResidentMebibytes(root: number): number {
  return sum(treeOf(root, readProcesses()).map(({ id }) => residentKibibytes(readProc(id, 'status')))) / 1024
}

/** `VmRSS` of /proc/PID/status, in KiB; 0 for a process that has ended. */
export function residentKibibytes(status: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
}

function readProcesses(): ProcessEntry[] {
  return readdirSync('/proc').flatMap((name) =>
    /^\d+$/.test(name) ? (parseStat(readProc(Number(name), 'stat')) ?? []) : [],
  )
}

/** A file of a process, empty if the process has ended. */
function readProc(id: number, file: string): string {
  try {
    return readFileSync(`/proc/${id}/${file}`, 'latin1')
  } catch {
    return ''
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
