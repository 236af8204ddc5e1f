import { milliseconds } from '../../lib/duration.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { LlmConfig } from './config/config.ts'
import { createLlm, type Llm, type LlmLimits } from './llm.ts'
import { compileModels } from './models/models.ts'
import { defaultEndpoints } from './request/endpoints.ts'

/**
 * Compiles the `llm` section, in steps so that traffic does not wait for thousands of models. Throws on what `checkLlm` reports,
 * and on a credential file that cannot be read.
 */
export function* compileLlmSection(
  config: LlmConfig,
  context: CompileContext,
  limits: LlmLimits,
): Generator<void, Llm> {
  const models = yield* compileModels(config, context)
  return createLlm(
    {
      models,
      endpoints: defaultEndpoints(config.passthrough === true),
      timeLimits: {
        firstByteTimeoutMs: milliseconds(config.timeouts?.firstByte),
        idleTimeoutMs: milliseconds(config.timeouts?.idle),
      },
    },
    context,
    limits,
  )
}
