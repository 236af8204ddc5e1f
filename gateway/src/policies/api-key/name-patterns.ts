import type { ModelAccess } from '../../pipeline/exchange.ts'
import type { ReportIssue } from '../../schema/report.ts'

/**
 * Compiles `allowedModels` or `allowedTargets` to a predicate on names. Patterns: exact, `*`, `prefix*`,
 * `*suffix`. An empty list allows none; an absent one is undefined and allows all.
 */
export function compilePatterns(patterns: readonly string[] | undefined): ModelAccess | undefined {
  return patterns && { allows: predicateOf(patterns), patterns }
}

function predicateOf(patterns: readonly string[]): (name: string) => boolean {
  if (patterns.includes('*')) return () => true
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const prefixes = patterns.flatMap((pattern) => (pattern.endsWith('*') ? [pattern.slice(0, -1)] : []))
  const suffixes = patterns.flatMap((pattern) => (pattern.startsWith('*') ? [pattern.slice(1)] : []))
  return (name) =>
    exact.has(name) ||
    prefixes.some((prefix) => name.startsWith(prefix)) ||
    suffixes.some((suffix) => name.endsWith(suffix))
}

/** Returns the names that both permit; undefined permits all. */
export function intersectAccess(
  one: ModelAccess | undefined,
  other: ModelAccess | undefined,
): ModelAccess | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return {
    allows: (name) => one.allows(name) && other.allows(name),
    patterns: one.patterns.filter(other.allows),
  }
}

/** Reports patterns with `*` elsewhere than at one end. `noun` is `model` or `target`. */
export function checkPatterns(patterns: readonly string[], noun: string, report: ReportIssue) {
  patterns.forEach((pattern, index) => {
    const stars = pattern.split('*').length - 1
    const atAnEnd = pattern.startsWith('*') || pattern.endsWith('*')
    if (stars > 1 || (stars === 1 && !atAnEnd)) {
      report([index], `a ${noun} pattern has at most one *, at its start or end, got "${pattern}"`)
    }
  })
}
