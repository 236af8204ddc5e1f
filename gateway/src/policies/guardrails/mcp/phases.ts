import type { Phase } from '../guard.ts'

/** Phases of methods, as configured. */
export type MethodPhases = Readonly<Record<string, string>>

/** Whether a key of `methods` can match: at most one `*`, at an end. */
export function isMethodPattern(pattern: string): boolean {
  return /^(?:\*|[^*]+\*?|\*[^*]+)$/.test(pattern)
}

/**
 * Compiles the decision whether a processor checks a method in a phase. `tasks/result` and `tasks/get`, which
 * have the result of a tool call, have the phases of `tools/call` unless a key other than `*` matches them.
 */
export function compilePhases(methods: MethodPhases): (method: string, phase: Phase) => boolean {
  const known = new Map<string, string>()
  const patterns = Object.entries(methods).toSorted(bySpecificity)
  const modeOf = (method: string): string => {
    const [pattern, mode] = patterns.find(([key]) => matches(key, method)) ?? ['*', 'off']
    return taskResults.has(method) && pattern === '*' ? modeOf('tools/call') : mode.toLowerCase()
  }
  return (method, phase) => {
    let mode = known.get(method)
    if (mode === undefined) {
      mode = modeOf(method)
      // Methods are from clients.
      if (known.size < maxKnown) known.set(method, mode)
    }
    return mode === phase || mode === 'full'
  }
}

const maxKnown = 100
const taskResults: ReadonlySet<string> = new Set(['tasks/result', 'tasks/get'])

/** A method precedes a prefix, a prefix a suffix, a suffix `*`; of the same kind the longer one is first. */
function bySpecificity([one]: [string, string], [other]: [string, string]): number {
  return rankOf(other) - rankOf(one) || other.length - one.length || (one < other ? -1 : 1)
}

function rankOf(pattern: string): number {
  if (pattern === '*') return 0
  if (pattern.startsWith('*')) return 1
  return pattern.endsWith('*') ? 2 : 3
}

function matches(pattern: string, method: string): boolean {
  if (pattern.endsWith('*')) return method.startsWith(pattern.slice(0, -1))
  return pattern.startsWith('*') ? method.endsWith(pattern.slice(1)) : method === pattern
}
