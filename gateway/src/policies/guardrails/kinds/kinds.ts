import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { CompiledKind, Rejection } from '../guard.ts'
import { checkRegex, compileRegex, type RegexConfig, regexSchema } from './regex/regex.ts'
import { checkWebhook, type WebhookConfig, webhookSchema } from './webhook/config.ts'
import { compileWebhook, type WebhookOptions } from './webhook/webhook.ts'

/** Schemas of guard kinds by configuration key. */
export const kindSchemas = { webhook: webhookSchema, regex: regexSchema }

/** Configuration of a guard kind. */
export type KindConfig =
  | { webhook: WebhookConfig; regex?: undefined }
  | { regex: RegexConfig; webhook?: undefined }

export function nameOfKind(config: KindConfig): string {
  return config.webhook === undefined ? 'regex' : 'webhook'
}

/** Reports errors beyond the schema of a kind. */
export function checkKind(
  config: KindConfig,
  place: Omit<WebhookOptions, 'limits'>,
  report: ReportIssue,
): void {
  const inside: ReportIssue = (path, message) => report([nameOfKind(config), ...path], message)
  if (config.webhook === undefined) checkRegex(config.regex, inside)
  else checkWebhook(config.webhook, place, inside)
}

export function compileKind(
  config: KindConfig,
  options: WebhookOptions & { rejection: Rejection },
  context: CompileContext,
): CompiledKind {
  if (config.webhook === undefined) return compileRegex(config.regex, options.rejection, context.threads)
  return compileWebhook(config.webhook, options, context)
}
