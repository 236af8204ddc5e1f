import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { Policy } from '../../pipeline/policy.ts'
import type { Path } from '../../schema/path.ts'
import { compileVariants, isConditional, variantsOf } from '../conditional.ts'
import type { GlobalRateLimitConfig } from '../rate-limit/global/config.ts'
import { compileGlobalRateLimit } from '../rate-limit/global/global.ts'
import type { ScopedLimits } from '../rate-limit/limit-snapshot.ts'
import { compileLocalRateLimit } from '../rate-limit/local.ts'
import type { LocalRateLimitConfig } from '../rate-limit/local-config.ts'
import { headVariables } from './cel-variables.ts'
import type { PoliciesConfig } from './schema.ts'

/** Limits that apply together: all limits of a list, or one entry of a conditional policy. */
type LocalVariant = {
  readonly limits: LocalRateLimitConfig
  /** Path of the limits in the policy. */
  readonly path: Path
  /** Path of a part of the limits: the index of an entry is omitted from that of a list of one. */
  at(part: Path): Path
}

type LocalPolicy = PoliciesConfig['localRateLimit']
type GlobalPolicy = PoliciesConfig['remoteRateLimit']

/** The variants of `localRateLimit`. */
export function localVariantsOf(policy: LocalPolicy): LocalVariant[] {
  if (policy === undefined) return []
  if (!isConditional(policy)) return [{ limits: policy, path: [], at: (part) => part }]
  return policy.conditional.map((limit, index) => {
    const path = ['conditional', index]
    return { limits: [limit], path, at: ([, ...rest]) => [...path, ...rest] }
  })
}

/** Name of the scope of a variant: each entry of a conditional policy has its own counts. */
function scopeOfVariant(scope: string, policy: object, index: number): string {
  return isConditional(policy) ? `${scope} entry ${index + 1}` : scope
}

type Steps = { readonly beforeBody: Policy | undefined; readonly afterBody: Policy | undefined }

const noSteps: Steps = { beforeBody: undefined, afterBody: undefined }

/** Compiles `localRateLimit`, as variants if it is conditional. `select` omits limits of other traffic. */
export function compileLocalLimits(
  policy: LocalPolicy,
  context: CompileContext,
  { scope, select }: { scope: string; select: (limits: LocalRateLimitConfig) => LocalRateLimitConfig },
): Steps {
  const variants = localVariantsOf(policy).map(({ limits }, index) =>
    compileLocalRateLimit(select(limits), context, { scope: scopeOfVariant(scope, policy ?? [], index) }),
  )
  return combined(policy, variants)
}

/** Compiles `remoteRateLimit`, as variants if it is conditional. `select` omits limits of other traffic. */
export function compileGlobalLimits(
  policy: GlobalPolicy,
  context: CompileContext,
  options: {
    scope: string
    hasTokens: boolean
    select: (limits: GlobalRateLimitConfig) => GlobalRateLimitConfig | undefined
  },
): Steps {
  const { hasTokens, select } = options
  const variants = variantsOf(policy).map(({ config }, index) => {
    const limits = select(config)
    const scope = scopeOfVariant(options.scope, policy ?? {}, index)
    return limits === undefined ? noSteps : compileGlobalRateLimit(limits, context, { scope, hasTokens })
  })
  return combined(policy, variants)
}

function combined(policy: object | undefined, variants: readonly Steps[]): Steps {
  if (policy === undefined || !isConditional<object, object>(policy)) return variants[0] ?? noSteps
  const of = (step: keyof Steps) =>
    compileVariants(
      policy,
      headVariables,
      variants.map((variant) => variant[step]),
    )
  return { beforeBody: of('beforeBody'), afterBody: of('afterBody') }
}

/** The limits of a scope, by the scope of their counts. */
export function limitsByScope(scope: string, policies: PoliciesConfig): ScopedLimits[] {
  const local = policies.localRateLimit ?? policies.rateLimit?.local
  const global = policies.remoteRateLimit ?? policies.rateLimit?.global
  const ofLocal = localVariantsOf(local).map(({ limits }, index) => ({
    place: scopeOfVariant(scope, local ?? [], index),
    local: limits,
    global: undefined,
  }))
  const ofGlobal = variantsOf(global).map(({ config }, index) => ({
    place: scopeOfVariant(scope, global ?? {}, index),
    local: [],
    global: config,
  }))
  return [...ofLocal, ...ofGlobal]
}
