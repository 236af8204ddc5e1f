import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { LocalRateLimitConfig } from './local-config.ts'

/** Local limits of one scope, and the paths of their parts in the configuration. */
export type LocatedLimits = { readonly limits: LocalRateLimitConfig; at(part: Path): Path }

/** Reports limits with the same `id` and other content: they share one count. */
export function checkSharedLimits(lists: Iterable<LocatedLimits>, report: ReportIssue): void {
  const contents = new Map<string, string>()
  for (const { limits, at } of lists) {
    limits.forEach((entry, index) => {
      if (entry.id === undefined) return
      const content = contentOf(entry)
      const first = contents.get(entry.id)
      if (first === undefined) contents.set(entry.id, content)
      else if (first !== content)
        report(at([index, 'id']), `another limit with the id "${entry.id}" differs: they share one count`)
    })
  }
}

/** Reports limits with `scope: shared` in a configuration without a database. */
export function checkScopes(lists: Iterable<LocatedLimits>, report: ReportIssue): void {
  for (const { limits, at } of lists) {
    for (const [index, { scope }] of limits.entries()) {
      if (scope !== 'shared') continue
      report(at([index, 'scope']), 'shared requires a database: set config.database.url')
    }
  }
}

function contentOf(entry: LocalRateLimitConfig[number]): string {
  return JSON.stringify(Object.entries(entry).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
