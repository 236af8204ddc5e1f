import { anyHost, normaliseHostname } from '../../../pipeline/routing/hostnames.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { RouteConfig } from '../plan.ts'

/** Numbers of matches by regular expression by Gateway and hostname, which are limited. */
export type RegexCounts = {
  /** Counts the matches of a rule; returns a mistake instead if a hostname would exceed the limit. */
  add(
    gateway: ObjectKey,
    hostnames: readonly string[] | undefined,
    configs: readonly RouteConfig[],
  ): string | undefined
}

export function createRegexCounts(limit: number): RegexCounts {
  const counts = new Map<string, number>()
  return {
    add(gateway, hostnames = [anyHost], configs) {
      let regexes = 0
      for (const { matches = [] } of configs)
        for (const { path } of matches) if (path?.regex !== undefined) regexes += 1
      if (regexes === 0) return undefined
      const names = new Set(hostnames.map(normaliseHostname))
      for (const name of names) {
        if ((counts.get(`${gateway} ${name}`) ?? 0) + regexes > limit)
          return `hostname ${name} must have at most ${limit} matches by regular expression of the path`
      }
      for (const name of names)
        counts.set(`${gateway} ${name}`, (counts.get(`${gateway} ${name}`) ?? 0) + regexes)
      return undefined
    },
  }
}
