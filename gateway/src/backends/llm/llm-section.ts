import { milliseconds } from '../../lib/duration.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { LlmConfig } from './config/config.ts'
import { createLlm, type Llm, type LlmLimits } from './llm.ts'
import { compileModels } from './models/models.ts'
import { defaultEndpoints } from './request/endpoints.ts'

/**
 * Compiles the `llm` section, in steps so that thousands of models do not delay traffic. Throws for issues of
 * `checkLlm` and unreadable credential files.
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
      endpoints: defaultEndpoints(
        config.passthrough === true || config.models.some(({ passthrough }) => passthrough !== undefined),
      ),
      passesUnknown: config.passthrough === true,
      timeLimits: {
        firstByteTimeoutMs: milliseconds(config.timeouts?.firstByte),
        idleTimeoutMs: milliseconds(config.timeouts?.idle),
      },
    },
    context,
    limits,
  )
}
