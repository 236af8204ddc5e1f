import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { McpCheck } from '../../../pipeline/mcp/mcp-check.ts'
import type { UpstreamContext } from '../../../upstream/destination.ts'
import { compileGuards } from '../compile-guards.ts'
import type { WebhookLimits } from '../kinds/webhook/limits.ts'
import type { McpGuardrailsConfig } from './config.ts'
import { compileProcessor } from './processor.ts'
import { guardTexts } from './texts.ts'

export type McpGuardOptions = {
  /** Name of the scope, the prefix of unnamed guards in metrics and logs. */
  readonly scope: string
  readonly limits: WebhookLimits
}

/** Compiles the guards of MCP messages of a scope, in order. Throws on errors that their check reports. */
export function compileMcpGuardrails(
  { processors = [], request, response }: McpGuardrailsConfig,
  { scope, limits }: McpGuardOptions,
  context: CompileContext,
): McpCheck[] {
  const { backends = [] }: UpstreamContext = context
  const checks = processors.map((config, index) =>
    compileProcessor(config, config.name ?? `${scope} processor ${index + 1}`, context),
  )
  const guards = compileGuards({ request, response }, { scope, backends, limits }, context)
  if (guards.request.length + guards.response.length > 0) checks.push(guardTexts(guards, context.clock))
  return checks
}
