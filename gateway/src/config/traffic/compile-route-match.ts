import type { RouteMatch, ValueMatch } from '../../pipeline/routing/route-match.ts'
import type { RouteMatchConfig } from './route-config.ts'

type ValueMatches = RouteMatchConfig['headers'] | RouteMatchConfig['query']

/** Converts a `matches[]` entry for the route table. */
export function routeMatchOf({ path, method, headers, query }: RouteMatchConfig): RouteMatch {
  return { path: pathMatchOf(path), method, headers: valueMatchesOf(headers), query: valueMatchesOf(query) }
}

function pathMatchOf(path: RouteMatchConfig['path']): RouteMatch['path'] {
  if (path?.exact !== undefined) return { kind: 'exact', value: path.exact }
  if (path?.regex !== undefined) return { kind: 'regex', value: path.regex, rank: path.rank }
  return { kind: 'prefix', value: path?.pathPrefix ?? '/' }
}

function valueMatchesOf(matches: ValueMatches = []): ValueMatch[] {
  return matches.map(({ name, value }) =>
    value.exact === undefined
      ? { name, kind: 'regex', value: value.regex ?? '' }
      : { name, kind: 'exact', value: value.exact },
  )
}
