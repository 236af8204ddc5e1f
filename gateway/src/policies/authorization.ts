import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import type { CelProgram } from '../cel/compile.ts'
import type { Reply } from '../net/send.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import { refuse } from '../pipeline/errors.ts'
import type { Exchange, Facts } from '../pipeline/exchange.ts'
import type { RuleMeter } from '../pipeline/metrics.ts'
import type { Policy } from '../pipeline/policy.ts'
import { decideBy, evaluateOr, type RuleKind, ruleSource } from '../pipeline/rules.ts'
import { anyOfShapes, cel, exactlyOne, type Infer, list, object } from '../schema/dsl.ts'

/** `authorization`: who may do what, as CEL rules. */
export const authorizationSchema = object(
  {
    rules: list(
      anyOfShapes(
        [
          cel({ doc: 'Short for `allow`.', example: '"admin" in jwt.roles' }),
          exactlyOne(
            {
              allow: cel({ doc: 'Where there are allow rules, one of them must be true.' }),
              deny: cel({ doc: 'Refuses when true, and when it cannot be evaluated.' }),
              require: cel({ doc: 'Refuses unless true.' }),
            },
            {},
            { doc: 'One rule.' },
          ),
        ],
        { doc: 'A CEL expression that is true or false.' },
      ),
      {
        doc: 'Any `deny` that holds refuses; every `require` must hold; if there are `allow` rules one must hold.',
        example: [{ deny: 'apiKey.group == "trial"' }, 'request.path.startsWith("/v1/")'],
      },
    ),
  },
  { doc: 'Rules over the request, the key or token it came with, and the LLM request.' },
)

export type AuthorizationConfig = Infer<typeof authorizationSchema>

/** The rules as up to two steps of a route: those that need the request's body wait for it. */
export type Authorization = {
  beforeBody: Policy | undefined
  afterBody: Policy | undefined
}

const bodyRoots: ReadonlySet<string> = new Set(['llmRequest', 'llm'])

/** Why a request is refused: a rule, or that no allow rule holds. */
type Ground = { name: string; meter: RuleMeter }
type Rule = Ground & { kind: RuleKind; program: CelProgram; needsBody: boolean }

export type AuthorizationOptions = {
  /** Variables that rules may name. */
  roots: ReadonlySet<string>
  /** Where the rules are configured: part of their names in metrics. */
  place: string
}

type Report = (path: (string | number)[], message: string) => void

/** Reports rules that do not compile or that name variables other than `roots`. */
export function checkAuthorization(config: AuthorizationConfig, roots: ReadonlySet<string>, report: Report) {
  config.rules.forEach((rule, index) => {
    const { source, path } = ruleSource(rule)
    checkCel(source, roots, (message) => report(['rules', index, ...path], message))
  })
}

/**
 * Compiles the rules. Deny and require rules run as soon as their variables exist. The allow rules form one decision:
 * as soon as one of them needs the body, all of them wait, or a request would be refused before its one chance was read.
 */
export function compileAuthorization(
  config: AuthorizationConfig,
  context: CompileContext,
  { roots, place }: AuthorizationOptions,
): Authorization {
  const ground = (name: string) => ({ name, meter: context.metrics.rule(`${place}: ${name}`) })
  const rules = config.rules.map((rule, index): Rule => {
    const { kind, source } = ruleSource(rule)
    const program = compileCheckedCel(source, roots)
    const needsBody = [...bodyRoots].some((root) => program.roots.has(root))
    return { ...ground(`${kind} rule ${index + 1}`), kind, program, needsBody }
  })
  const noneAllows = ground('no allow rule holds')
  const allowWaits = rules.some((rule) => rule.kind === 'allow' && rule.needsBody)
  const waits = (rule: Rule) => (rule.kind === 'allow' ? allowWaits : rule.needsBody)
  const early = rules.filter((rule) => !waits(rule))
  const late = rules.filter(waits)
  return {
    beforeBody: early.length === 0 ? undefined : earlyPolicy(decision(early, noneAllows)),
    afterBody: late.length === 0 ? undefined : latePolicy(decision(late, noneAllows)),
  }
}

function earlyPolicy(decide: Decision): Policy {
  return { name: 'authorization', onRequest: (exchange) => answer(exchange, decide(exchange.facts)) }
}

function latePolicy(decide: Decision): Policy {
  return {
    name: 'authorization of the LLM request',
    onRequest: (exchange) => answer(exchange, decide(factsWithBody(exchange.facts))),
  }
}

/** A request without an LLM body has an empty one, so that `has(llmRequest.model)` is false rather than an error. */
function factsWithBody(facts: Facts): object {
  if (facts.llmRequest !== undefined) return facts
  return { ...facts, llmRequest: {}, llm: facts.llm ?? {} }
}

/** The ground for refusing, or undefined. */
type Decision = (variables: object) => Ground | undefined

function decision(rules: readonly Rule[], noneAllows: Ground): Decision {
  return decideBy(rules, noneAllows, ({ program }, variables: object, otherwise) =>
    evaluateOr(program, variables, otherwise),
  )
}

function answer(exchange: Exchange, ground: Ground | undefined): Reply | undefined {
  if (ground === undefined) return undefined
  ground.meter.refused()
  exchange.refusedBy = `authorization: ${ground.name}`
  return refuse(exchange, { status: 403, code: 'authorization_failed', message: 'authorization failed' })
}
