import { referencesField } from '../../cel/references.ts'
import { ruleSource } from '../../pipeline/rules.ts'
import type { Path } from '../../schema/path.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { conditionsOf, type MaybeConditional, variantsOf } from '../conditional.ts'
import { expressionsOfDelay } from '../delay.ts'
import { expressionsOfDirectResponse } from '../direct-response.ts'
import { expressionsOfExtAuthz } from '../ext-authz/config.ts'
import { extProcExpressions } from '../ext-proc/config.ts'
import type { GlobalRateLimitConfig } from '../rate-limit/global/config.ts'
import type { LocalRateLimitConfig } from '../rate-limit/local-config.ts'
import { expressionsOfTransformations, readsLlm, readsLlmRequest } from '../transformations/config.ts'
import { localVariantsOf } from './limit-variants.ts'
import type { PoliciesConfig } from './schema.ts'

export type WrittenExpression = { path: Path; source: string }

/** Returns the expressions of a set of policies with their paths. */
export function expressionsOf(policies: PoliciesConfig): WrittenExpression[] {
  const { authorization, mcpAuthorization, localRateLimit, remoteRateLimit, rateLimit, budgets } = policies
  const { directResponse, extAuthz, extProc, transformations } = policies
  return [
    ...ofRules('authorization', authorization?.rules),
    ...ofRules('mcpAuthorization', mcpAuthorization?.rules),
    ...conditionsOf(localRateLimit).map(({ source, path }) => ({
      source,
      path: ['localRateLimit', ...path],
    })),
    ...localVariantsOf(localRateLimit).flatMap(({ limits, at }) =>
      ofLocal([], limits).map(({ source, path }) => ({ source, path: ['localRateLimit', ...at(path)] })),
    ),
    ...ofLocal(['rateLimit', 'local'], rateLimit?.local),
    ...ofVariants('remoteRateLimit', remoteRateLimit, (one) => ofGlobal([], one)),
    ...ofGlobal(['rateLimit', 'global'], rateLimit?.global),
    ...ofBudgets(budgets),
    ...ofVariants('extAuthz', extAuthz, expressionsOfExtAuthz),
    ...ofVariants('directResponse', directResponse, expressionsOfDirectResponse),
    ...ofVariants('delay', policies.delay, expressionsOfDelay),
    ...ofVariants('transformations', transformations, expressionsOfTransformations),
    ...ofVariants('extProc', extProc, extProcExpressions),
  ]
}

/** The conditions of a policy and the expressions of its variants. */
function ofVariants<Config extends object>(
  name: string,
  policy: MaybeConditional<Config> | undefined,
  expressionsOfOne: (config: Config) => WrittenExpression[],
): WrittenExpression[] {
  const variants = variantsOf(policy).flatMap(({ config, path }) =>
    expressionsOfOne(config).map((one) => ({ ...one, path: [...path, ...one.path] })),
  )
  return [...conditionsOf(policy), ...variants].map(({ source, path }) => ({ source, path: [name, ...path] }))
}

const earlyPolicies: ReadonlySet<unknown> = new Set(['delay', 'directResponse', 'extProc', 'transformations'])

/** Whether expressions before the backend read the body; rules and limits have their own steps. */
export function readsBodyEarly(policies: PoliciesConfig): boolean {
  return expressionsOf(policies).some(
    ({ path, source }) => earlyPolicies.has(path[0]) && referencesField(source, 'request', 'body'),
  )
}

/** Whether conditions or request expressions of transformations read the parsed LLM request. */
export function isAfterLlmRequest(config: NonNullable<PoliciesConfig['transformations']>): boolean {
  const sources = conditionsOf(config).map(({ source }) => source)
  return sources.some(readsLlm) || variantsOf(config).some(({ config: one }) => readsLlmRequest(one))
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

function ofLocal(path: Path, limits: LocalRateLimitConfig = []): WrittenExpression[] {
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

function ofGlobal(path: Path, limits: GlobalRateLimitConfig | undefined): WrittenExpression[] {
  return (limits?.descriptors ?? []).flatMap(({ entries, cost, limitOverride }, index) => {
    const at = [...path, 'descriptors', index]
    return [
      ...entries.map(({ value }, entry) => ({ source: value, path: [...at, 'entries', entry, 'value'] })),
      ...(cost === undefined ? [] : [{ source: cost, path: [...at, 'cost'] }]),
      ...(limitOverride === undefined ? [] : [{ source: limitOverride, path: [...at, 'limitOverride'] }]),
    ]
  })
}
