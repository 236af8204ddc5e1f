import type { ReportIssue } from '../../schema/report.ts'

/**
 * Compiles `allowedModels` to a predicate on model names. Patterns: exact, `*`, `prefix*`, `*suffix`. An
 * empty list allows none.
 */
export function compileAllowedModels(patterns: readonly string[]): (model: string) => boolean {
  if (patterns.includes('*')) return () => true
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const prefixes = patterns.flatMap((pattern) => (pattern.endsWith('*') ? [pattern.slice(0, -1)] : []))
  const suffixes = patterns.flatMap((pattern) => (pattern.startsWith('*') ? [pattern.slice(1)] : []))
  return (model) =>
    exact.has(model) ||
    prefixes.some((prefix) => model.startsWith(prefix)) ||
    suffixes.some((suffix) => model.endsWith(suffix))
}

/** Reports patterns with `*` elsewhere than at one end. */
export function checkAllowedModels(patterns: readonly string[], report: ReportIssue) {
  patterns.forEach((pattern, index) => {
    const stars = pattern.split('*').length - 1
    const atAnEnd = pattern.startsWith('*') || pattern.endsWith('*')
    if (stars > 1 || (stars === 1 && !atAnEnd)) {
      report([index], `a model pattern has at most one *, at its start or end, got "${pattern}"`)
    }
  })
}
