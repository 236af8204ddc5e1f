import { referencesField } from '../../cel/references.ts'
import { ruleSource } from '../../pipeline/rules.ts'
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import type { PoliciesConfig } from './schema.ts'

export type WrittenExpression = { path: Path; source: string }

/** Returns the expressions of a set of policies with their paths. */
export function expressionsOf(policies: PoliciesConfig): WrittenExpression[] {
  const { authorization, mcpAuthorization, localRateLimit, remoteRateLimit, rateLimit, budgets } = policies
  return [
    ...ofRules('authorization', authorization?.rules),
    ...ofRules('mcpAuthorization', mcpAuthorization?.rules),
    ...ofLocal(['localRateLimit'], localRateLimit),
    ...ofLocal(['rateLimit', 'local'], rateLimit?.local),
    ...ofGlobal(['remoteRateLimit'], remoteRateLimit),
    ...ofGlobal(['rateLimit', 'global'], rateLimit?.global),
    ...ofBudgets(budgets),
  ]
}

/** Reports expressions over `request.body` on MCP routes. `where` is the location of the MCP servers. */
export function checkNoBody(policies: PoliciesConfig, where: string, report: ReportIssue): void {
  // Budgets apply to LLM requests only.
  for (const { source, path } of expressionsOf({ ...policies, budgets: undefined })) {
    if (!referencesField(source, 'request', 'body')) continue
    report(
      path,
      `request.body does not exist on MCP routes, and ${where} is behind this gateway: move the expression to the routes it is for`,
    )
  }
}

function ofRules(name: string, rules: Parameters<typeof ruleSource>[0][] = []): WrittenExpression[] {
  return rules.map((rule, index) => {
    const { source, path } = ruleSource(rule)
    return { source, path: [name, 'rules', index, ...path] }
  })
}

function ofLocal(path: Path, limits: PoliciesConfig['localRateLimit'] = []): WrittenExpression[] {
  return limits.flatMap(({ key }, index) =>
    key === undefined ? [] : [{ source: key, path: [...path, index, 'key'] }],
  )
}

function ofBudgets(budgets: PoliciesConfig['budgets'] = []): WrittenExpression[] {
  return budgets.flatMap(({ key, when }, index) => [
    ...(key === undefined ? [] : [{ source: key, path: ['budgets', index, 'key'] }]),
    ...(when === undefined ? [] : [{ source: when, path: ['budgets', index, 'when'] }]),
  ])
}

function ofGlobal(path: Path, limits: PoliciesConfig['remoteRateLimit']): WrittenExpression[] {
  return (limits?.descriptors ?? []).flatMap(({ entries, cost, limitOverride }, index) => {
    const at = [...path, 'descriptors', index]
    return [
      ...entries.map(({ value }, entry) => ({ source: value, path: [...at, 'entries', entry, 'value'] })),
      ...(cost === undefined ? [] : [{ source: cost, path: [...at, 'cost'] }]),
      ...(limitOverride === undefined ? [] : [{ source: limitOverride, path: [...at, 'limitOverride'] }]),
    ]
  })
}
