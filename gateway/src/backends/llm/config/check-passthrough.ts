import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { settingsOf, sharedProvider } from '../models/settings.ts'
import type { LlmConfig, ModelConfig } from './config.ts'

/** Settings without effect on requests that are forwarded unchanged. */
const changingKeys = [
  ...['defaults', 'overrides', 'transformation', 'finalTransformation', 'prompts', 'promptCaching'],
  'cache',
  'guardrails',
]

/**
 * Reports settings of a model, of its shared provider and of all models that a model with `passthrough`
 * bypasses.
 */
export function checkPassthrough(
  model: ModelConfig,
  config: LlmConfig,
  path: Path,
  report: ReportIssue,
): void {
  if (model.passthrough === undefined) return
  const own: ReadonlyMap<string, unknown> = new Map(Object.entries(model))
  const shared = sharedProvider(model, config)
  const effective: ReadonlyMap<string, unknown> = new Map(Object.entries(settingsOf(model, shared)))
  for (const key of changingKeys) {
    if (own.get(key) !== undefined)
      report([...path, key], 'is not valid with passthrough: requests are forwarded unchanged')
    else if (hasEffect(effective.get(key)))
      report(
        [...path, 'passthrough'],
        `is not valid with ${key} in the defaults of provider "${shared?.name}", which forwarded requests bypass: reference another provider`,
      )
  }
  const { guardrails, policies } = config
  if ((guardrails ?? policies?.guardrails) !== undefined)
    report(
      [...path, 'passthrough'],
      'is not valid with guardrails of llm, which forwarded requests bypass: set guardrails on the other models',
    )
}

/** Absent body fields are empty objects in merged settings. */
function hasEffect(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
