import type { CelProgram } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import { isWorkBudgetExceeded, withSharedWorkBudget } from '../cel/work-budget.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Facts } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import { evaluateOrDefault } from '../pipeline/rules.ts'
import { anyOfShapes, cel, list, object, optional, type Schema, withFields } from '../schema/dsl.ts'
import type { Path } from '../schema/path.ts'
import type { ReportIssue } from '../schema/report.ts'

/** A list of variants of a policy in place of one. */
export type Conditional<Variant> = {
  conditional: (Variant & { condition?: string | undefined })[]
}

/** A policy, or variants of it with conditions. `Variant` differs for policies that are lists. */
export type MaybeConditional<Config, Variant = Config> = Config | Conditional<Variant>

const maxVariants = 64

const condition = optional(
  cel({
    doc: 'Expression that selects the entry; an entry without one is last and matches every request. A failed evaluation does not match.',
    example: 'request.path.startsWith("/admin/")',
  }),
)

/**
 * Schema of a policy that may be conditional. `variant` is the schema of an entry, by default that of the
 * policy.
 */
export function conditionalOr<Config extends object>(schema: Schema<Config>): Schema<MaybeConditional<Config>>
export function conditionalOr<Config extends object, Variant extends object>(
  schema: Schema<Config>,
  variant: Schema<Variant>,
): Schema<MaybeConditional<Config, Variant>>
export function conditionalOr(schema: Schema<object>, variant: Schema<object> = schema): Schema<object> {
  const { doc = '' } = schema.meta() as { doc?: string }
  return anyOfShapes(
    [
      schema,
      object(
        {
          conditional: list(
            withFields(variant, { condition }),
            { doc: 'Entries; the first one whose condition is true applies.' },
            { min: 1, max: maxVariants },
          ),
        },
        { doc: 'One of several variants, selected by conditions on the request.' },
      ),
    ],
    { doc },
  )
}

/** Whether a policy consists of variants. */
export function isConditional<Config extends object, Variant extends object>(
  config: MaybeConditional<Config, Variant>,
): config is Conditional<Variant> {
  return !Array.isArray(config) && 'conditional' in config
}

/** The variants of a policy with their paths; the policy itself if it is not conditional. */
export function variantsOf<Config extends object>(
  config: MaybeConditional<Config> | undefined,
): { config: Config; path: Path }[] {
  if (config === undefined) return []
  if (!isConditional(config)) return [{ config, path: [] }]
  return config.conditional.map((entry, index) => ({ config: entry, path: ['conditional', index] }))
}

/** Reports conditions that are invalid or absent. The variants have their own checks. */
export function checkConditions(
  config: MaybeConditional<object, object>,
  variables: ReadonlySet<string>,
  report: ReportIssue,
): void {
  if (!isConditional(config)) return
  config.conditional.forEach(({ condition: source }, index) => {
    const path = ['conditional', index, 'condition']
    if (source !== undefined) checkCel(source, variables, (message) => report(path, message))
    else if (index < config.conditional.length - 1)
      report(path, 'must be set: only the last entry may match every request')
  })
}

/** Conditions of a policy with their paths. */
export function conditionsOf(config: MaybeConditional<object, object> | undefined) {
  if (config === undefined || !isConditional(config)) return []
  return config.conditional.flatMap(({ condition: source }, index) =>
    source === undefined ? [] : [{ source, path: ['conditional', index, 'condition'] }],
  )
}

/** Compiles a policy that may be conditional; `compileOne` compiles it or a variant. */
export function compileConditional<Config extends object>(
  config: MaybeConditional<Config>,
  variables: ReadonlySet<string>,
  compileOne: (config: Config) => Policy | undefined,
): Policy | undefined {
  if (!isConditional(config)) return compileOne(config)
  return compileVariants(config, variables, config.conditional.map(compileOne))
}

/**
 * Compiles the selection among compiled variants; an undefined variant has no effect. Undefined if no variant
 * has an effect.
 */
export function compileVariants(
  { conditional }: Conditional<object>,
  variables: ReadonlySet<string>,
  policies: readonly (Policy | undefined)[],
): Policy | undefined {
  if (policies.every((policy) => policy === undefined)) return undefined
  const variants = conditional.map(({ condition: source }, index) => ({
    program: source === undefined ? undefined : compileCheckedCel(source, variables),
    policy: withVariant(policies[index], index),
  }))
  const readsRequest = variants.some(({ program }) => program !== undefined && mayReadRequest(program))
  const name = policies.find((policy) => policy !== undefined)?.name ?? 'conditional'
  return {
    name,
    select(exchange) {
      const { facts, pathVariants } = exchange
      if (pathVariants === undefined || !readsRequest) return selectWithin(variants, facts)
      return selectForReadings(variants, facts, pathVariants)
    },
  }
}

/** `variables()` reads every variable. */
function mayReadRequest({ roots, source }: CelProgram): boolean {
  return roots.has('request') || source.includes('variables')
}

type CompiledVariant = { readonly program: CelProgram | undefined; readonly policy: Policy | undefined }

/** All conditions share the work limit of one evaluation. */
function selectWithin(variants: readonly CompiledVariant[], facts: Facts): Policy | undefined {
  return withSharedWorkBudget(() => {
    for (const { program, policy } of variants) {
      if (program === undefined || evaluateOrDefault(program, facts, false)) return policy
      if (isWorkBudgetExceeded()) return refusing
    }
    return undefined
  })
}

/** A request must not avoid a policy by a path that its backend reads as another one. */
function selectForReadings(
  variants: readonly CompiledVariant[],
  facts: Facts,
  paths: readonly string[],
): Policy | undefined {
  const selected = selectWithin(variants, facts)
  if (selected === refusing) return refusing
  for (const path of paths) {
    const reading = { ...facts, request: { ...facts.request, path } }
    if (selectWithin(variants, reading) !== selected) return refusingAmbiguous
  }
  return selected
}

const refusingAmbiguous: Policy = {
  name: 'conditional',
  onRequest: (exchange) =>
    refuse(exchange, {
      status: 400,
      code: 'ambiguous_path',
      message:
        'ambiguous request path: a condition selects another policy for a path with escapes and parameters decoded',
    }),
}

/** A request must not avoid a policy by a condition that exceeds its work limit. */
const refusing: Policy = {
  name: 'conditional',
  onRequest: (exchange) =>
    refuse(exchange, {
      status: 403,
      code: 'condition_failed',
      message: 'a condition takes too much work on this request',
    }),
}

/** Adds the position of the variant to the explanation of its policy. */
function withVariant(policy: Policy | undefined, index: number): Policy | undefined {
  if (policy === undefined) return undefined
  return {
    ...policy,
    explain: (exchange) => {
      const explained = policy.explain?.(exchange)
      return explained === undefined ? { entry: index + 1 } : { entry: index + 1, policy: explained }
    },
  }
}
