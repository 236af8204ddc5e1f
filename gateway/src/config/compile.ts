import { compileLlm } from '../backends/llm/index.ts'
import { compileMcp } from '../backends/mcp/index.ts'
import { isLoopbackHost } from '../lib/host-port.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Found } from '../pipeline/routing/route-table.ts'
import type { Listener, Route, Snapshot } from '../pipeline/snapshot.ts'
import { compilePolicies } from '../policies/index.ts'
import { portsOf } from './ports.ts'
import type { Config } from './schema.ts'

const defaultBindAddress = '::'
const defaultMaxBufferBytes = 32 * 1024 * 1024

/** What compiling needs to know of the process besides its tools. */
export type ProcessFacts = {
  version: string
  /** `SESSION_KEY` of the environment; `config.session.key` comes first. */
  sessionKey: string | undefined
}

/** Compiles a validated Config. Throws with the path of a file the Config names and that cannot be read. */
export async function compileConfig(
  config: Config,
  context: CompileContext,
  facts: ProcessFacts,
): Promise<Snapshot> {
  const listeners = [
    ...(config.llm ? [llmListener(config, config.llm, context)] : []),
    ...(config.mcp ? [mcpListener(config, config.mcp, context, facts)] : []),
  ]
  return { listeners: new Map(listeners.map((listener) => [listener.key, listener])) }
}

function llmListener(config: Config, llm: NonNullable<Config['llm']>, context: CompileContext): Listener {
  const maxBufferSize = maxBufferSizeOf(config)
  const { llmRequest, backend, errorFormat } = compileLlm(llm, context, { maxBufferSize })
  const route: Route = {
    name: 'llm',
    policies: compilePolicies([{ place: 'llm', policies: llm.policies ?? {} }], context, {
      kind: 'llm',
      llmRequest,
    }).policies,
    backend,
    meter: context.metrics.route('llm'),
    errorFormat,
  }
  return { ...addressOf(config, portsOf(config).llm), kind: 'http', tls: undefined, match: everything(route) }
}

function mcpListener(
  config: Config,
  mcp: NonNullable<Config['mcp']>,
  context: CompileContext,
  facts: ProcessFacts,
): Listener {
  const address = addressOf(config, portsOf(config).mcp)
  const { policies, rules } = compilePolicies([{ place: 'mcp', policies: mcp.policies ?? {} }], context, {
    kind: 'mcp',
    isLoopback: isLoopbackHost(address.host),
  })
  const { backend, stop } = compileMcp(mcp, context, {
    maxBufferSize: maxBufferSizeOf(config),
    sessionKey: config.config?.session?.key ?? facts.sessionKey,
    sessionTtl: config.config?.mcp?.sessionTtl,
    rules,
    version: facts.version,
    place: 'mcp',
  })
  const route: Route = {
    name: 'mcp',
    policies,
    backend,
    meter: context.metrics.route('mcp'),
    errorFormat: () => 'text',
  }
  return { ...address, kind: 'http', tls: undefined, match: everything(route), stop }
}

/** Every request of an address of its own takes the same route. */
function everything(route: Route): () => Found<Route> {
  const found = { target: route, prefix: '/' }
  return () => found
}

function addressOf({ config }: Config, port = 0): { key: string; host: string; port: number } {
  const host = config?.bindAddress ?? defaultBindAddress
  return { key: `${host}:${port}`, host, port }
}

function maxBufferSizeOf({ frontendPolicies }: Config): number {
  return frontendPolicies?.http?.maxBufferSize ?? defaultMaxBufferBytes
}
