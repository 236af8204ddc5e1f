import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { LlmConfig, ModelConfig } from './config.ts'

/** Settings without effect on requests that are forwarded unchanged. */
const changingKeys = [
  ...['defaults', 'overrides', 'transformation', 'finalTransformation', 'prompts', 'promptCaching'],
  'guardrails',
]

/** Reports settings of a model, and guards of all models, that a model with `passthrough` bypasses. */
export function checkPassthrough(
  model: ModelConfig,
  { guardrails, policies }: LlmConfig,
  path: Path,
  report: ReportIssue,
): void {
  if (model.passthrough === undefined) return
  const present: ReadonlyMap<string, unknown> = new Map(Object.entries(model))
  for (const key of changingKeys) {
    if (present.get(key) !== undefined)
      report([...path, key], 'is not valid with passthrough: requests are forwarded unchanged')
  }
  if ((guardrails ?? policies?.guardrails) !== undefined)
    report(
      [...path, 'passthrough'],
      'is not valid with guardrails of llm, which forwarded requests bypass: set guardrails on the other models',
    )
}
