import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { LocalRateLimitConfig } from './local-config.ts'

/** Local limits of one scope with their path. */
export type LocatedLimits = { readonly path: Path; readonly limits: LocalRateLimitConfig }

/** Reports limits with the same `id` and other content: they share one count. */
export function checkSharedLimits(lists: Iterable<LocatedLimits>, report: ReportIssue): void {
  const contents = new Map<string, string>()
  for (const { path, limits } of lists) {
    limits.forEach((entry, index) => {
      if (entry.id === undefined) return
      const content = contentOf(entry)
      const first = contents.get(entry.id)
      if (first === undefined) contents.set(entry.id, content)
      else if (first !== content)
        report(
          [...path, index, 'id'],
          `another limit with the id "${entry.id}" differs: they share one count`,
        )
    })
  }
}

/** Reports limits with `scope: shared` in a configuration without a database. */
export function checkScopes(lists: Iterable<LocatedLimits>, report: ReportIssue): void {
  for (const { path, limits } of lists) {
    for (const [index, { scope }] of limits.entries()) {
      if (scope !== 'shared') continue
      report([...path, index, 'scope'], 'shared requires a database: set config.database.url')
    }
  }
}

function contentOf(entry: LocalRateLimitConfig[number]): string {
  return JSON.stringify(Object.entries(entry).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
