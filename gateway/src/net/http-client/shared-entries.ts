import { createGauge } from '../../lib/planes/gauge.ts'
import { createKeyedGauge, type Entry } from '../../lib/planes/keyed-gauge.ts'
import type { Memory } from '../../lib/planes/memory.ts'

/** An amount of all data planes that belongs to one upstream. */
export type SharedEntry = {
  /** Adds a call or a connection, which is a use of the entry; false at the maximum. */
  tryAdd(max: number): boolean
  subtract(): void
  /** Ends the use that began with `of`. */
  end(): void
}

export type SharedEntries = {
  /** The entry of an upstream, until all its uses have ended. Undefined with too many upstreams. */
  of(upstream: string): SharedEntry | undefined
}

type Used = { readonly entry: Entry; uses: number }

/** Creates the entries of this data plane; pools of one upstream share an entry. */
export function createSharedEntries(memory: Memory, name: string, maxUpstreams: number): SharedEntries {
  const total = createGauge(memory, name)
  const gauge = createKeyedGauge(memory, name, maxUpstreams)
  const limits = { max: Number.POSITIVE_INFINITY, total, maxTotal: Number.POSITIVE_INFINITY }
  const entries = new Map<string, Used>()

  function open(upstream: string): Used | undefined {
    const opened = gauge.open(upstream, limits)
    if (opened.kind !== 'open') return undefined
    const used = { entry: opened.entry, uses: 0 }
    entries.set(upstream, used)
    return used
  }

  return {
    of(upstream) {
      const used = entries.get(upstream) ?? open(upstream)
      if (used === undefined) return undefined
      used.uses += 1

      function end(): void {
        if (used === undefined) return
        used.uses -= 1
        if (used.uses > 0) return
        entries.delete(upstream)
        used.entry.close()
        total.subtract(1)
      }

      return {
        end,
        tryAdd(max) {
          if (!used.entry.tryAdd(1, max)) return false
          used.uses += 1
          return true
        },
        subtract() {
          used.entry.subtract(1)
          end()
        },
      }
    },
  }
}
