import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { exactlyOne, Infer } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { CompiledKind, Rejection } from '../guard.ts'
import { compileAzureContentSafety } from './azure-content-safety/azure-content-safety.ts'
import { azureContentSafetySchema, checkAzureContentSafety } from './azure-content-safety/config.ts'
import {
  bedrockGuardrailsSchema,
  checkBedrockGuardrails,
  compileBedrockGuardrails,
} from './bedrock-guardrails/bedrock-guardrails.ts'
import {
  checkGoogleModelArmor,
  compileGoogleModelArmor,
  googleModelArmorSchema,
} from './google-model-armor/google-model-armor.ts'
import { compileOpenAiModeration, openAiModerationSchema } from './open-ai-moderation/open-ai-moderation.ts'
import { checkPresidio, presidioSchema } from './presidio/config.ts'
import { compilePresidio } from './presidio/presidio.ts'
import { checkRegex, compileRegex, regexSchema } from './regex/regex.ts'
import { checkService } from './service/config.ts'
import { checkWebhook, webhookSchema } from './webhook/config.ts'
import { compileWebhook, type WebhookOptions } from './webhook/webhook.ts'

/** Schemas of guard kinds by configuration key. */
export const kindSchemas = {
  webhook: webhookSchema,
  regex: regexSchema,
  openAIModeration: openAiModerationSchema,
  azureContentSafety: azureContentSafetySchema,
  googleModelArmor: googleModelArmorSchema,
  bedrockGuardrails: bedrockGuardrailsSchema,
  presidio: presidioSchema,
}

/** Configuration of a guard kind. */
export type KindConfig = Infer<ReturnType<typeof exactlyOne<typeof kindSchemas, Record<never, never>>>>

const kindNames = Object.keys(kindSchemas)

export function nameOfKind(config: KindConfig): string {
  return (
    Object.entries(config).find(([key, value]) => value !== undefined && kindNames.includes(key))?.[0] ?? ''
  )
}

/** Reports errors beyond the schema of a kind. */
export function checkKind(
  config: KindConfig,
  place: Omit<WebhookOptions, 'limits'>,
  report: ReportIssue,
): void {
  const inside: ReportIssue = (path, message) => report([nameOfKind(config), ...path], message)
  if (config.webhook !== undefined) checkWebhook(config.webhook, place, inside)
  else if (config.regex !== undefined) checkRegex(config.regex, inside)
  else if (config.openAIModeration !== undefined) checkService(config.openAIModeration, inside)
  else if (config.googleModelArmor !== undefined) checkGoogleModelArmor(config.googleModelArmor, inside)
  else if (config.bedrockGuardrails !== undefined) checkBedrockGuardrails(config.bedrockGuardrails, inside)
  else if (config.presidio !== undefined) checkPresidio(config.presidio, place.backends, inside)
  else checkAzureContentSafety(config.azureContentSafety, place.phase, inside)
}

export function compileKind(
  config: KindConfig,
  options: WebhookOptions & { rejection: Rejection },
  context: CompileContext,
): CompiledKind {
  if (config.webhook !== undefined) return compileWebhook(config.webhook, options, context)
  if (config.regex !== undefined) return compileRegex(config.regex, options.rejection, context.threads)
  if (config.openAIModeration !== undefined)
    return compileOpenAiModeration(config.openAIModeration, options, context)
  if (config.googleModelArmor !== undefined)
    return compileGoogleModelArmor(config.googleModelArmor, options, context)
  if (config.bedrockGuardrails !== undefined)
    return compileBedrockGuardrails(config.bedrockGuardrails, options, context)
  if (config.presidio !== undefined) return compilePresidio(config.presidio, options, context)
  return compileAzureContentSafety(config.azureContentSafety, options, context)
}
