import type { CelProgram } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import type { JsonValue } from '../lib/json/json.ts'
import type { WorkQueue } from '../lib/scheduling/work-queue.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { Policy } from '../pipeline/policy.ts'
import {
  compileYieldingDecision,
  type Denial,
  denialSuffix,
  evaluateOrDefault,
  explainRules,
  needsBody,
  type RuleKind,
  ruleSource,
} from '../pipeline/rules.ts'
import { anyOfShapes, cel, exactlyOne, type Infer, list, object } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'
import type { RuleMeter } from '../telemetry/metrics/rules-and-guards.ts'

/** A rule of one of the three kinds. */
export const ruleSchema = exactlyOne(
  {
    allow: cel({ doc: 'If there are allow rules, at least one must be true.' }),
    deny: cel({ doc: 'Denies if true or if the evaluation fails.' }),
    require: cel({ doc: 'Denies unless true.' }),
  },
  {},
  { doc: 'Rule.' },
)

/** `authorization`: CEL rules on requests. */
export const authorizationSchema = object(
  {
    rules: list(
      anyOfShapes([cel({ doc: 'Short for `allow`.', example: '"admin" in jwt.roles' }), ruleSchema], {
        doc: 'Boolean CEL expression.',
      }),
      {
        doc: 'Any true `deny` denies; every `require` must be true; if there are `allow` rules, one must be true.',
        example: [{ deny: 'apiKey.group == "trial"' }, 'request.path.startsWith("/v1/")'],
      },
    ),
  },
  { doc: 'Rules on the request, its key or token, and the LLM request.' },
)

export type AuthorizationConfig = Infer<typeof authorizationSchema>

/** Rules as up to two steps of a route: before and after the body is read. */
export type Authorization = {
  beforeBody: Policy | undefined
  afterBody: Policy | undefined
}

/** Denial reason: a rule, or that no allow rule is true. */
type DenialReason = { name: string; meter: RuleMeter }
type Rule = DenialReason & { kind: RuleKind; program: CelProgram; needsBody: boolean }

export type AuthorizationOptions = {
  /** CEL variables of the rules. */
  variables: ReadonlySet<string>
  /** Name of the scope: part of the rule names in metrics. */
  scope: string
}

/** Reports rules that do not compile or use variables outside `variables`. */
export function checkAuthorization(
  config: AuthorizationConfig,
  variables: ReadonlySet<string>,
  report: ReportIssue,
) {
  config.rules.forEach((rule, index) => {
    const { source, path } = ruleSource(rule)
    checkCel(source, variables, (message) => report(['rules', index, ...path], message))
  })
}

/**
 * Compiles the rules. Deny and require rules run as soon as their variables are available. Allow rules form
 * one decision: if one of them needs the body, all of them run after it is read.
 */
export function compileAuthorization(
  config: AuthorizationConfig,
  context: CompileContext,
  { variables, scope }: AuthorizationOptions,
): Authorization {
  const reason = (name: string) => ({ name, meter: context.metrics.rule(`${scope}: ${name}`) })
  const rules = config.rules.map((rule, index): Rule => {
    const { kind, source } = ruleSource(rule)
    const program = compileCheckedCel(source, variables)
    return { ...reason(`${kind} rule ${index + 1}`), kind, program, needsBody: needsBody(program) }
  })
  const noneAllows = reason('no allow rule holds')
  const allowWaits = rules.some((rule) => rule.kind === 'allow' && rule.needsBody)
  const waits = (rule: Rule) => (rule.kind === 'allow' ? allowWaits : rule.needsBody)
  const early = rules.filter((rule) => !waits(rule))
  const late = rules.filter(waits)
  const parts = (some: readonly Rule[]) => ({
    rules: some,
    decide: decision(some, noneAllows, context.workQueue),
  })
  return {
    beforeBody: early.length === 0 ? undefined : earlyPolicy({ ...parts(early), scope }),
    afterBody:
      late.length === 0
        ? undefined
        : latePolicy({ ...parts(late), scope, isLlm: variables.has('llmRequest') }),
  }
}

type Parts = { readonly rules: readonly Rule[]; readonly decide: Decision; readonly scope: string }

function earlyPolicy({ rules, decide, scope }: Parts): Policy {
  return {
    name: 'authorization',
    onRequest: (exchange) => decideForReadings(exchange, exchange.facts, decide),
    explain: ({ facts }) => ({ scope, rules: explainRules(rules, facts) }),
  }
}

function latePolicy({ rules, decide, scope, isLlm }: Parts & { readonly isLlm: boolean }): Policy {
  const factsOf = isLlm ? factsWithBody : ({ facts }: Exchange) => facts
  return {
    name: isLlm ? 'authorization of the LLM request' : 'authorization of the body',
    onRequest: (exchange) => decideForReadings(exchange, factsOf(exchange), decide),
    explain: (exchange) => ({ scope, rules: explainRules(rules, factsOf(exchange)) }),
  }
}

/** Decides for the matched path, then for each alternative reading by a lenient backend. */
function decideForReadings(
  exchange: Exchange,
  variables: object,
  decide: Decision,
): Reply | undefined | Promise<Reply | undefined> {
  const refusal = decide(variables)
  const { pathVariants } = exchange
  if (pathVariants !== undefined) return decideForOthers(exchange, { variables, refusal, decide })
  if (refusal instanceof Promise) return refusal.then((settled) => answer(exchange, settled))
  return answer(exchange, refusal)
}

async function decideForOthers(
  exchange: Exchange,
  { variables, refusal, decide }: { variables: object; refusal: ReturnType<Decision>; decide: Decision },
): Promise<Reply | undefined> {
  const { pathVariants = [], facts } = exchange
  let found = await refusal
  for (const path of pathVariants) {
    if (found !== undefined) break
    found = await decide({ ...variables, request: { ...facts.request, path } })
  }
  return answer(exchange, found)
}

/**
 * Returns the facts with an empty `llmRequest` if there is none, so that `has(llmRequest.model)` is false,
 * not an error.
 */
function factsWithBody({ facts, llm }: Exchange): object {
  if (facts.llmRequest !== undefined) return facts
  return { ...facts, llmRequest: {}, llm: facts.llm ?? llm?.operation ?? {} }
}

/** Compiles the rules for requests that have not been sent. The function resolves with the permission. */
export function compilePermission(
  config: AuthorizationConfig,
  { workQueue }: Pick<CompileContext, 'workQueue'>,
  variables: ReadonlySet<string>,
): (facts: object) => Promise<boolean> {
  const rules = config.rules.map((rule) => {
    const { kind, source } = ruleSource(rule)
    return { kind, program: compileCheckedCel(source, variables) }
  })
  const evaluate = (rule: (typeof rules)[number], facts: object, otherwise: boolean) =>
    evaluateOrDefault(rule.program, facts, otherwise)
  const decide = compileYieldingDecision<object, (typeof rules)[number], object>(
    rules,
    {},
    { evaluate, workQueue },
  )
  return async (facts) => (await decide(facts)) === undefined
}

/** Returns a denial or undefined. */
type Decision = (
  variables: object,
) => Denial<DenialReason> | undefined | Promise<Denial<DenialReason> | undefined>

function decision(rules: readonly Rule[], noneAllows: DenialReason, workQueue: WorkQueue): Decision {
  const holds = ({ program }: Rule, variables: object, otherwise: boolean) =>
    evaluateOrDefault(program, variables, otherwise)
  return compileYieldingDecision(rules, noneAllows, { evaluate: holds, workQueue })
}

function answer(exchange: Exchange, refusal: Denial<DenialReason> | undefined): Reply | undefined {
  if (refusal === undefined) return undefined
  const { reason } = refusal
  reason.meter.refused()
  exchange.log.refusedBy = `authorization: ${reason.name}${denialSuffix(refusal)}`
  return refuse(exchange, { status: 403, code: 'authorization_failed', message: 'authorization failed' })
}

/** `authorization` of a model with its place. */
export type ModelRules = { readonly scope: string; readonly config: AuthorizationConfig }

/**
 * Compiles the rules of models. A request must satisfy those of each model that may serve it: with failover,
 * of every target. Undefined without rules.
 */
export function compileModelAuthorization(
  ofModels: readonly ModelRules[],
  context: CompileContext,
  variables: ReadonlySet<string>,
): Policy | undefined {
  if (ofModels.length === 0) return undefined
  const byConfig = new Map<object, readonly Policy[]>(
    ofModels.map(({ scope, config }) => {
      const { beforeBody, afterBody } = compileAuthorization(config, context, { variables, scope })
      return [config, [beforeBody, afterBody].filter((policy) => policy !== undefined)]
    }),
  )
  const rulesOf = (exchange: Exchange): readonly Policy[] => {
    const configured = exchange.llm?.rulesOfModels?.(exchange) ?? []
    return configured.flatMap((config) => {
      const rules = byConfig.get(config)
      if (rules === undefined) throw new Error('rules of a model that were not compiled')
      return rules
    })
  }
  return {
    name: 'authorization of the model',
    isOfModels: true,
    onRequest(exchange) {
      const rules = rulesOf(exchange)
      return rules.length === 0 ? undefined : firstRefusal(rules, exchange)
    },
    explain(exchange): JsonValue | undefined {
      const explained = rulesOf(exchange).map((policy) => policy.explain?.(exchange) ?? null)
      return explained.length === 0 ? undefined : explained
    },
  }
}

async function firstRefusal(rules: readonly Policy[], exchange: Exchange): Promise<Reply | undefined> {
  for (const rule of rules) {
    const refusal = await rule.onRequest?.(exchange)
    if (refusal !== undefined) return refusal
  }
  return undefined
}
