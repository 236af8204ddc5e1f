import { chosenWorkloads, type Stage, workersOf } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { startScript } from '../subjects/processes.ts'
import { benchKey, startTollgate } from '../subjects/tollgate.ts'
import { audience, type Issuer, issuer } from './tokens.ts'
import { mcpConfig, mcpWorkloads } from './workloads.ts'

/** Tool calls with a signed token and rules on every call. */
export async function mcpStage(options: BenchOptions, tokens: Issuer): Promise<Stage> {
  const { placement, entry } = options
  const { port: upstreamPort } = await startScript('mcp/upstream.ts', (port) => [String(port)], {
    cpus: placement.upstream,
  })
  const mcp = mcpConfig(upstreamPort, tokens)
  return {
    workloads: chosenWorkloads(options, mcpWorkloads(tokens)),
    startRelay: (nodeFlags) =>
      startScript('mcp/relay.ts', (port) => [String(port), String(upstreamPort)], {
        nodeFlags,
        cpus: placement.gateway,
      }),
    startGateway: (nodeFlags = options.nodeFlags) =>
      startTollgate({
        upstreamPort,
        mcp,
        nodeFlags,
        entry,
        cpus: placement.gateway,
        workers: workersOf(options),
      }),
    peers: { name: 'mcp', upstreamPort, values: { benchKey, issuer, audience, keySet: tokens.keySet } },
  }
}
