import { milliseconds } from '../../lib/duration.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { LlmConfig } from './config/config.ts'
import { compileModels } from './models/models.ts'
import { usualEndpoints } from './request/endpoints.ts'
import { createLlm, type Llm, type LlmLimits } from './route.ts'

/**
 * Compiles the `llm` section, in steps so that traffic does not wait for thousands of models. Throws on what `checkLlm` reports,
 * and on a credential file that cannot be read.
 */
export function* compileLlm(
  config: LlmConfig,
  context: CompileContext,
  limits: LlmLimits,
): Generator<void, Llm> {
  const models = yield* compileModels(config, context)
  return createLlm(
    {
      models,
      endpoints: usualEndpoints(config.passthrough === true),
      timeLimits: {
        firstByteTimeoutMs: milliseconds(config.timeouts?.firstByte),
        idleTimeoutMs: milliseconds(config.timeouts?.idle),
      },
    },
    context,
    limits,
  )
}
