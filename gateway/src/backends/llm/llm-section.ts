import { milliseconds } from '../../lib/duration.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { compileContextWindows } from './catalog/context-windows.ts'
import type { LlmConfig } from './config/config.ts'
import { createLlm, type Llm, type LlmLimits } from './llm.ts'
import { compileModels } from './models/models.ts'
import type { CatalogFacts } from './models/routing/failover.ts'
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
  const models = yield* compileModels(config, context, catalogFacts(config, context, limits))
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

/** Prices, and context windows if a virtual model uses them. */
function catalogFacts(
  { virtualModels = [] }: LlmConfig,
  context: CompileContext,
  { prices, modelCatalog }: LlmLimits,
): CatalogFacts {
  const readsWindows = virtualModels.some(({ routing }) => routing.failover?.contextFallback === true)
  const contextWindows =
    readsWindows && modelCatalog !== undefined ? compileContextWindows(modelCatalog, context) : undefined
  return { prices, contextWindows }
}
