import type { CelProgram } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import { referencesField } from '../cel/references.ts'
import { withSharedWorkBudget } from '../cel/work-budget.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Exchange, Facts } from '../pipeline/exchange.ts'
import { loggableItemName, type McpItem } from '../pipeline/mcp/mcp-item.ts'
import { type Recording, recordItem } from '../pipeline/recording/recording.ts'
import {
  compileDecision,
  type Denial,
  denialSuffix,
  evaluateOrDefault,
  explainRules,
  type RuleKind,
  ruleSource,
} from '../pipeline/rules.ts'
import { anyOfShapes, cel, exactlyOne, type Infer, list, object } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'
import type { RuleMeter } from '../telemetry/metrics/rules-and-guards.ts'

const variableNames = ['now', 'request', 'source', 'jwt', 'basicAuth', 'apiKey', 'mcp']
/** Variables of rules for single tools, prompts and resources. */
export const ruleVariables: ReadonlySet<string> = new Set(variableNames)

/** A rule of one of the three kinds. */
export const mcpRuleSchema = exactlyOne(
  {
    allow: cel({ doc: 'If there are allow rules, at least one must be true.' }, variableNames),
    deny: cel({ doc: 'Hides and denies if true or if the evaluation fails.' }, variableNames),
    require: cel({ doc: 'Hides and denies unless true.' }, variableNames),
  },
  {},
  { doc: 'Rule.' },
)

/** `mcpAuthorization`: CEL rules on access to tools, prompts and resources. */
export const mcpAuthorizationSchema = object(
  {
    rules: list(
      anyOfShapes(
        [
          cel({ doc: 'Short for `allow`.', example: 'mcp.tool.name == "echo"' }, variableNames),
          mcpRuleSchema,
        ],
        { doc: 'Boolean CEL expression over `mcp` and the facts of the client.' },
      ),
      {
        doc: 'Any true `deny` denies; every `require` must be true; if there are `allow` rules, one must be true.',
        example: ['"admin" in jwt.roles', 'has(mcp.tool) && mcp.tool.name.startsWith("read_")'],
      },
    ),
  },
  {
    doc: 'Rules for single tools, prompts and resources. Denied items are hidden from lists and refused in calls.',
  },
)

export type McpAuthorizationConfig = Infer<typeof mcpAuthorizationSchema>

export type McpAuthorization = {
  /**
   * Whether the client may list or use the item. At list time arguments are unknown: a rule that reads them
   * counts as satisfied. A denied call is counted and recorded in `exchange.log.refusedBy`.
   */
  permits(exchange: Exchange, item: McpItem, at: 'list' | 'call'): boolean
  /** Whether the client may use a method, regardless of its item. */
  permitsMethod(exchange: Exchange, method: string): boolean
  /** Decides on an item of a list, and names the rule that decides. */
  explain(facts: Facts, item: McpItem): ItemDecision
}

/** Decision on an item of a list. */
export type ItemDecision = {
  readonly visible: boolean
  /** Undefined if no rule decides: there are none, or none allows. */
  readonly rule?: DecidingRule | undefined
}

export type DecidingRule = {
  /** Scope of the rules: `mcpAuthorization`, or with the name of a gateway. */
  readonly rules: string
  /** Index in the list of rules. */
  readonly index: number
  readonly kind: RuleKind
  readonly expression: string
  /** Absent if the evaluation failed. */
  readonly result?: boolean
  readonly error?: string
  /** The rule reads arguments: each call decides. */
  readonly readsArguments?: true
}

/** Denial reason: a rule, or that no allow rule is true. */
type DenialReason = { name: string; meter: RuleMeter }
type Rule = DenialReason & { kind: RuleKind; program: CelProgram; readsMethod: boolean }
/** Reports rules that do not compile or use other variables. */
export function checkMcpAuthorization(config: McpAuthorizationConfig, report: ReportIssue) {
  config.rules.forEach((rule, index) => {
    const { source, path } = ruleSource(rule)
    checkCel(source, ruleVariables, (message) => report(['rules', index, ...path], message))
  })
}

/** Compiles the rules; an empty list permits everything. `label` is the prefix of their names in metrics. */
export function compileMcpAuthorization(
  config: McpAuthorizationConfig,
  context: CompileContext,
  label = 'mcpAuthorization',
): McpAuthorization {
  const reason = (name: string): DenialReason => ({
    name,
    meter: context.metrics.rule(`${label}: ${name}`),
  })
  const rules = config.rules.map((rule, index): Rule => {
    const { kind, source } = ruleSource(rule)
    const readsMethod = ['method', 'methodName'].some((name) => referencesField(source, 'mcp', name))
    return {
      ...reason(`${kind} rule ${index + 1}`),
      kind,
      program: compileCheckedCel(source, ruleVariables),
      readsMethod,
    }
  })
  if (rules.length === 0)
    return { permits: () => true, permitsMethod: () => true, explain: () => ({ visible: true }) }
  const noneAllows = reason('no allow rule holds')
  const decide = compileDecision(rules, noneAllows, holds)
  const ofMethods = methodDecision(rules, noneAllows)

  return {
    permits(exchange, item, at) {
      if (at === 'list') return decide(listedVariables(exchange.facts, item)) === undefined
      const input = calledVariables(exchange.facts, item)
      const permitted = recordDenial(exchange, decide(input))
      if (exchange.recording?.times)
        recordRules(exchange.recording, { item, permitted, variables: input.variables })
      return permitted
    },
    permitsMethod(exchange, method) {
      const permitted = recordDenial(exchange, ofMethods(exchange.facts, method))
      if (!permitted && exchange.recording?.times) {
        const item = { kind: 'method', name: method, target: '' }
        recordRules(exchange.recording, {
          item,
          permitted,
          variables: variablesOf(exchange.facts, { method }),
        })
      }
      return permitted
    },
    explain(facts, item) {
      const input = listedVariables(facts, item)
      const decisive: { rule?: Rule } = {}
      const denial = compileDecision(rules, noneAllows, (rule, scope: RuleInput, otherwise) => {
        const value = holds(rule, scope, otherwise)
        const decides = rule.kind === 'require' ? !value : value
        if (decides) decisive.rule ??= rule
        return value
      })(input)
      const { rule } = decisive
      const visible = denial === undefined
      if (rule === undefined) return { visible }
      return { visible, rule: { rules: label, index: rules.indexOf(rule), ...explainRule(rule, input) } }
    },
  }

  /** Records a decision for explanations; rules that permit are described on request only. */
  function recordRules(recording: Recording, { item, permitted, variables }: Decided): void {
    const { kind, name, target } = item
    const results = permitted && !recording.explainsAll ? undefined : explainRules(rules, variables)
    recordItem(recording, { rules: label, item: { kind, name: shortName(name), target }, permitted, results })
  }
}

type Decided = {
  readonly item: { readonly kind: string; readonly name: string; readonly target: string }
  readonly permitted: boolean
  readonly variables: object
}

const maxNameText = 200

function shortName(name: string): string {
  return loggableItemName(name).slice(0, maxNameText)
}

/** Combines lists of rules, all of which must permit; undefined for an empty list. */
export function allOfMcpAuthorizations(all: readonly McpAuthorization[]): McpAuthorization | undefined {
  if (all.length < 2) return all[0]
  return {
    permits: (exchange, item, at) => all.every((rules) => rules.permits(exchange, item, at)),
    permitsMethod: (exchange, method) => all.every((rules) => rules.permitsMethod(exchange, method)),
    explain(facts, item) {
      const decisions = all.map((rules) => rules.explain(facts, item))
      const [first = { visible: true }] = decisions
      return decisions.find(({ visible }) => !visible) ?? decisions.find(({ rule }) => rule) ?? first
    },
  }
}

/** Evaluates a rule again, for its result or error. */
function explainRule(rule: Rule, { variables, probe }: RuleInput): Omit<DecidingRule, 'rules' | 'index'> {
  const { kind, program } = rule
  if (probe !== undefined) probe.touched = false
  const [described] = explainRules([rule], variables)
  const { value, error } = described ?? {}
  return {
    kind,
    expression: program.source,
    ...(typeof value === 'boolean' && probe?.touched !== true && { result: value }),
    ...(typeof error === 'string' && probe?.touched !== true && { error }),
    ...(probe?.touched === true && { readsArguments: true }),
  }
}

function recordDenial(exchange: Exchange, refusal: Denial<DenialReason> | undefined): boolean {
  if (refusal === undefined) return true
  const { reason } = refusal
  reason.meter.refused()
  exchange.log.refusedBy = `mcp-authorization: ${reason.name}${denialSuffix(refusal)}`
  return false
}

/** Input of rules. At list time, `probe` records access to arguments. */
type RuleInput = { variables: object; probe: Probe | undefined }
type Probe = { touched: boolean }

function calledVariables(
  facts: Facts,
  { method, kind, name, target, arguments: given = {} }: McpItem,
): RuleInput {
  const item = kind === 'tool' ? { name, target, arguments: given } : { name, target }
  return { variables: variablesOf(facts, { method, [kind]: item }), probe: undefined }
}

/** At list time, rules see the method of a later use of the item. */
const usedBy = { tool: 'tools/call', prompt: 'prompts/get', resource: 'resources/read' } as const

function listedVariables(facts: Facts, { kind, name, target }: McpItem): RuleInput {
  const probe: Probe = { touched: false }
  const tool = {
    name,
    target,
    get arguments() {
      probe.touched = true
      return undefined
    },
  }
  const item = kind === 'tool' ? tool : { name, target }
  return { variables: variablesOf(facts, { method: usedBy[kind], [kind]: item }), probe }
}

function variablesOf({ clock, request, source, jwt, basicAuth, apiKey }: Facts, mcp: object): object {
  return { clock, request, source, jwt, basicAuth, apiKey, mcp }
}

function holds({ kind, program }: Rule, { variables, probe }: RuleInput, otherwise: boolean): boolean {
  if (probe === undefined) return evaluateOrDefault(program, variables, otherwise)
  probe.touched = false
  const value = evaluateOrDefault(program, variables, otherwise)
  return probe.touched ? kind !== 'deny' : value
}

/** Known methods of all protocol revisions. Methods on an item are decided by `permits`. */
const knownMethods: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'completion/complete',
  'logging/setLevel',
  'notifications/cancelled',
  'notifications/initialized',
  'notifications/progress',
  'notifications/roots/list_changed',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/subscribe',
  'resources/templates/list',
  'resources/unsubscribe',
  'server/discover',
  'subscriptions/listen',
  'tools/call',
  'tools/list',
])

/**
 * Compiles the decision on methods. A known method is denied only by a true deny rule that reads
 * `mcp.method`. An unknown method, whose effect is unknown, needs a true allow rule that reads `mcp.method`,
 * and all deny and require rules apply.
 */
function methodDecision(rules: readonly Rule[], noneAllows: DenialReason) {
  const deniesOfMethods = rules.filter((rule) => rule.kind === 'deny' && rule.readsMethod)
  const decideUnknown = compileDecision(
    rules.filter((rule) => rule.kind !== 'allow' || rule.readsMethod),
    noneAllows,
    holds,
  )
  const mayBeAllowed = rules.some((rule) => rule.kind === 'allow' && rule.readsMethod)
  return (facts: Facts, method: string): Denial<DenialReason> | undefined => {
    const variables = variablesOf(facts, { method })
    if (knownMethods.has(method)) {
      const reason = withSharedWorkBudget(() =>
        deniesOfMethods.find((rule) => evaluateOrDefault(rule.program, variables, false)),
      )
      return reason && { reason: reason, exceedsWork: false }
    }
    if (!mayBeAllowed) return { reason: noneAllows, exceedsWork: false }
    return decideUnknown({ variables, probe: undefined })
  }
}
