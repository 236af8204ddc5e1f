import { compileCel } from '../../../cel/cel.ts'
import { checkCel } from '../../../cel/checked.ts'
import { parseDuration } from '../../../lib/duration.ts'
import { nearest } from '../../../lib/nearest.ts'
import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { compileNamePattern } from '../models/name-pattern.ts'
import type { LlmConfig } from './config.ts'
import { reportDuplicates } from './duplicates.ts'
import { routingRoots } from './model-settings.ts'
import type { FailoverConfig, VirtualModelConfig, WeightedConfig } from './virtual-models.ts'

const roots: ReadonlySet<string> = new Set(routingRoots)

/** Reports issues of `llm.virtualModels`: names, targets, expressions, and settings without effect. */
export function checkVirtualModels({ models, virtualModels = [] }: LlmConfig, report: ReportIssue): void {
  const names = virtualModels.map((virtual) => virtual.name)
  reportDuplicates(names, (index, name) =>
    report(['virtualModels', index, 'name'], `duplicate virtual model name "${name}"`),
  )
  const patterns = models.map((model) => compileNamePattern(model.name))
  const modelNames = models.map((model) => model.name)
  for (const [index, virtual] of virtualModels.entries()) {
    const path = ['virtualModels', index]
    if (virtual.name.includes('*'))
      report([...path, 'name'], 'the name of a virtual model must not contain *')
    for (const [position, target] of targetsOf(virtual).entries()) {
      const at = [...path, 'routing', routingKind(virtual), 'targets', position, 'model']
      if (target.includes('*')) report(at, 'a target must be one model: its name must not contain *')
      else if (names.includes(target) && !modelNames.includes(target)) {
        report(at, `"${target}" is a virtual model: a target must be one of llm.models`)
      } else if (!patterns.some((pattern) => pattern.matches(target))) {
        const near = nearest(target, modelNames)
        report(at, `no entry of llm.models matches "${target}"${near ? `, did you mean "${near}"?` : ''}`)
      }
    }
    checkRouting(virtual, models, [...path, 'routing'], report)
  }
}

/** Reports virtual models that compare prices, for a configuration without any. */
export function checkPreferredCosts({ virtualModels = [] }: LlmConfig, report: ReportIssue): void {
  for (const [index, { routing }] of virtualModels.entries()) {
    if (routing.failover?.prefer !== 'cost') continue
    const path = ['virtualModels', index, 'routing', 'failover', 'prefer']
    report(path, 'models have no cost without prices: set config.modelCatalog')
  }
}

function checkRouting(
  { routing }: VirtualModelConfig,
  models: LlmConfig['models'],
  path: Path,
  report: ReportIssue,
): void {
  const { weighted, failover, conditional } = routing
  if (weighted !== undefined) {
    const total = weighted.targets.reduce((sum, { weight }) => sum + (weight ?? 1), 0)
    const at = [...path, 'weighted']
    if (total === 0) report([...at, 'targets'], 'at least one weight must be greater than 0')
    checkChoice(weighted, models, at, report)
  }
  if (failover !== undefined) {
    checkChoice(failover, models, [...path, 'failover'], report)
    checkFailover(failover, [...path, 'failover'], report)
  }
  if (conditional !== undefined) checkConditional(conditional.targets, [...path, 'conditional'], report)
}

/** Checks settings that weighted routing and failover share. */
function checkChoice(
  { targets, sessionAffinity, requiredLabels = {} }: FailoverConfig | WeightedConfig,
  models: LlmConfig['models'],
  path: Path,
  report: ReportIssue,
): void {
  if (sessionAffinity !== undefined) {
    const at = [...path, 'sessionAffinity']
    checkCel(sessionAffinity.source, roots, (message) => report([...at, 'source'], message))
    if (targets.length === 1) report(at, 'has no effect on a single target: remove it or add a target')
  }
  const labels = new Set(models.flatMap((model) => Object.keys(model.labels ?? {})))
  for (const [label, source] of Object.entries(requiredLabels)) {
    const at = [...path, 'requiredLabels', label]
    if (!labels.has(label)) report(at, `no entry of llm.models has the label "${label}"`)
    checkCel(source, roots, (message) => report(at, message))
  }
}

function checkFailover(
  { targets, sessionAffinity, prefer, contextFallback, hedge }: FailoverConfig,
  path: Path,
  report: ReportIssue,
): void {
  const priorities = new Set(targets.map(({ priority }) => priority))
  const hasEquals = priorities.size < targets.length
  if (sessionAffinity !== undefined && targets.length > 1 && !hasEquals)
    report([...path, 'sessionAffinity'], 'requires targets of equal priority')
  if (prefer !== undefined && !hasEquals) report([...path, 'prefer'], 'requires targets of equal priority')
  if (prefer !== undefined && sessionAffinity !== undefined)
    report([...path, 'prefer'], 'is not valid with sessionAffinity: remove one of them')
  const delayMs = hedge && parseDuration(hedge.delay)
  if (delayMs !== undefined && (delayMs <= 0 || delayMs > maxHedgeDelayMs))
    report([...path, 'hedge', 'delay'], 'must be greater than 0, and at most 1m')
  if (hedge !== undefined && targets.length === 1) report([...path, 'hedge'], 'requires a second target')
  if (contextFallback === true && targets.length === 1)
    report([...path, 'contextFallback'], 'requires a second target')
}

const maxHedgeDelayMs = 60_000

type ConditionalTargets = NonNullable<VirtualModelConfig['routing']['conditional']>['targets']

function checkConditional(targets: ConditionalTargets, path: Path, report: ReportIssue): void {
  for (const [index, { when }] of targets.entries()) {
    const at = [...path, 'targets', index, 'when']
    if (when === undefined) {
      if (index < targets.length - 1) report(at, 'is required for all targets but the last')
      continue
    }
    const compiled = compileCel(when, roots)
    if (compiled.kind === 'issue')
      report(at, `${compiled.message} (line ${compiled.line}, column ${compiled.column})`)
  }
}

function targetsOf({ routing }: VirtualModelConfig): string[] {
  const { targets } = routing.weighted ?? routing.failover ?? routing.conditional ?? { targets: [] }
  return targets.map(({ model }) => model)
}

function routingKind({ routing }: VirtualModelConfig): 'weighted' | 'failover' | 'conditional' {
  if (routing.weighted !== undefined) return 'weighted'
  return routing.failover !== undefined ? 'failover' : 'conditional'
}
