import type { CelProgram } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import type { Connection } from '../net/listener/connection.ts'
import type { ConnectionRules } from '../net/listener/connection-handler.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import {
  compileDecision,
  denialSuffix,
  evaluateOrDefault,
  type RuleKind,
  ruleSource,
} from '../pipeline/rules.ts'
import { anyOfShapes, cel, exactlyOne, type Infer, list, object } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'
import type { RuleMeter } from '../telemetry/metrics/rules-and-guards.ts'

const variableNames = ['now', 'source', 'destination']
const variables: ReadonlySet<string> = new Set(variableNames)

/** Rule on connections. */
export const connectionRuleSchema = exactlyOne(
  {
    allow: cel({ doc: 'If there are allow rules, at least one must be true.' }, variableNames),
    deny: cel({ doc: 'Closes the connection if true or if the evaluation fails.' }, variableNames),
    require: cel({ doc: 'Closes the connection unless true.' }, variableNames),
  },
  {},
  { doc: 'Rule.' },
)

/** `networkAuthorization`: CEL rules on connections. */
export const networkAuthorizationSchema = object(
  {
    rules: list(
      anyOfShapes(
        [
          cel({ doc: 'Short for `allow`.', example: 'source.address == "192.0.2.1"' }, variableNames),
          connectionRuleSchema,
        ],
        { doc: 'Boolean CEL expression on `source` and `destination`.' },
      ),
      {
        doc: 'Any true `deny` denies; every `require` must be true; if there are `allow` rules, one must be true.',
        example: [{ allow: 'cidr("10.0.0.0/8").containsIP(source.address)' }],
      },
    ),
  },
  {
    doc: 'Rules on connections of HTTP, TCP and TLS listeners, evaluated once, before the first request. A denied connection is closed.',
  },
)

export type NetworkAuthorizationConfig = Infer<typeof networkAuthorizationSchema>

/** Reports rules that do not compile or use other variables. */
export function checkNetworkAuthorization(config: NetworkAuthorizationConfig, report: ReportIssue): void {
  config.rules.forEach((written, index) => {
    const { source, path } = ruleSource(written)
    checkCel(source, variables, (message) => report(['rules', index, ...path], message))
  })
}

type Reason = { readonly name: string; readonly meter: RuleMeter }
type Rule = Reason & { readonly kind: RuleKind; readonly program: CelProgram }

/**
 * Compiles the rules of connections at `place`, the listener in log lines. Undefined without rules. The
 * decision logs and counts each denial.
 */
export function compileNetworkAuthorization(
  config: NetworkAuthorizationConfig | undefined,
  { metrics, log, clock }: CompileContext,
  place: string,
): ConnectionRules | undefined {
  if (config === undefined || config.rules.length === 0) return undefined
  const reason = (name: string): Reason => ({ name, meter: metrics.rule(`network: ${name}`) })
  const rules = config.rules.map((written, index): Rule => {
    const { kind, source } = ruleSource(written)
    return { ...reason(`${kind} rule ${index + 1}`), kind, program: compileCheckedCel(source, variables) }
  })
  const decide = compileDecision<Reason, Rule, object>(
    rules,
    reason('no allow rule holds'),
    ({ program }, facts, fallback) => evaluateOrDefault(program, facts, fallback),
  )
  return {
    awaitsHandshake: rules.some(({ program }) => readsHandshake(program)),
    permits({ source, destination, serverName }: Connection) {
      const denial = decide({ clock, source, destination })
      if (denial === undefined) return true
      const { name, meter } = denial.reason
      meter.refused()
      log.info(
        {
          listener: place,
          client: source.address,
          ...(serverName === undefined ? {} : { serverName }),
          ...(source.spiffeId === undefined ? {} : { clientIdentity: source.spiffeId }),
          outcome: 'refused',
          refusedBy: `networkAuthorization: ${name}${denialSuffix(denial)}`,
        },
        'connection',
      )
      return false
    },
  }
}

/** Members that are available before a TLS handshake. */
const early = ['address', 'network', 'port', 'rawAddress', 'rawPort'] as const

/** Whether an expression may read more than addresses. A variable as a whole counts as read entirely. */
function readsHandshake({ source, roots }: CelProgram): boolean {
  if (!roots.has('source') && !roots.has('destination')) return false
  const names = [...source.matchAll(/\b(?:source|destination)\b(?:\s*\.\s*([A-Za-z_]\w*))?/g)]
  return !names.every(([, name]) => name !== undefined && early.some((one) => one === name))
}
