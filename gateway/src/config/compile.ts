import { compileLlm } from '../backends/llm/index.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Listener, Route, Snapshot } from '../pipeline/snapshot.ts'
import { compileLlmPolicies } from '../policies/index.ts'
import type { Config } from './schema.ts'

const defaultBindAddress = '::'
const defaultLlmPort = 4000
const defaultMaxBufferBytes = 32 * 1024 * 1024

/** Compiles a validated Config. Throws with the path of a file the Config names and that cannot be read. */
export function compileConfig(config: Config, context: CompileContext): Snapshot {
  const listeners = config.llm ? [llmListener(config, config.llm, context)] : []
  return { listeners: new Map(listeners.map((listener) => [listener.key, listener])) }
}

function llmListener(config: Config, llm: NonNullable<Config['llm']>, context: CompileContext): Listener {
  const maxBufferSize = config.frontendPolicies?.http?.maxBufferSize ?? defaultMaxBufferBytes
  const { llmRequest, backend, errorFormat } = compileLlm(llm, context, { maxBufferSize })
  const route: Route = {
    name: 'llm',
    policies: compileLlmPolicies(llm.policies ?? {}, context, llmRequest, 'llm'),
    backend,
    meter: context.metrics.route('llm'),
    errorFormat,
  }
  const host = config.config?.bindAddress ?? defaultBindAddress
  const port = llm.port ?? defaultLlmPort
  return { key: `${host}:${port}`, host, port, match: () => route }
}
