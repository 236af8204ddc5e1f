import type { ExplainedRule } from '../../../api/ledger/explanation.ts'
import { Badge, type Tone } from '../../../components/feedback/badge.tsx'

/** Rules with the result of each. */
export function Rules({ rules }: { rules: readonly ExplainedRule[] }) {
  return (
    <ul className="space-y-1.5">
      {rules.map((rule, index) => (
        <li key={index} className="flex flex-wrap items-baseline gap-x-2.5 gap-y-1 text-xs">
          <Badge tone={toneOf(rule)}>{resultOf(rule)}</Badge>
          <span className="text-ink-soft">{rule.rule}</span>
          <code className="min-w-0 break-all">{rule.expression}</code>
          {rule.error !== undefined && <span className="basis-full break-words text-bad">{rule.error}</span>}
        </li>
      ))}
    </ul>
  )
}

/** Reads `{scope, rules}` of a policy; undefined for other descriptions. */
export function rulesOf(
  decision: unknown,
): { readonly scope: string; readonly rules: readonly ExplainedRule[] } | undefined {
  if (typeof decision !== 'object' || decision === null || !('rules' in decision)) return undefined
  const { rules } = decision
  if (!Array.isArray(rules)) return undefined
  const scope = 'scope' in decision && typeof decision.scope === 'string' ? decision.scope : ''
  return { scope, rules: rules as ExplainedRule[] }
}

function toneOf({ refuses, error, value }: ExplainedRule): Tone {
  if (refuses) return 'bad'
  if (error !== undefined) return 'warn'
  return value === true ? 'good' : 'neutral'
}

function resultOf({ refuses, error, value }: ExplainedRule): string {
  const result = error === undefined ? String(value) : 'error'
  return refuses ? `${result}, refuses` : result
}
