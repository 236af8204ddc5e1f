import { chosenWorkloads, type Stage, workersOf } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { startScript, stop } from '../subjects/processes.ts'
import { benchKey, startTollgate } from '../subjects/tollgate.ts'
import { guardrailsAt, guardWorkloads } from './guards.ts'
import { workloads } from './workloads.ts'

/** Chat completions with virtual keys, a rule and limits. */
export async function llmStage(options: BenchOptions): Promise<Stage> {
  const { placement, entry } = options
  const { port: upstreamPort } = await startUpstream(options)
  return {
    workloads: chosenWorkloads(options, workloads),
    startRelay: (nodeFlags) => startRelay(options, [upstreamPort], nodeFlags),
    startGateway: (nodeFlags = options.nodeFlags) =>
      startTollgate({
        upstreamPort,
        nodeFlags,
        entry,
        cpus: placement.gateway,
        workers: workersOf(options),
      }),
    peers: { name: 'llm', upstreamPort, values: { benchKey } },
  }
}

/** Guards of requests and responses that call a webhook which responds at once. */
export async function guardStage(options: BenchOptions): Promise<Stage> {
  const { placement, entry } = options
  const { port: upstreamPort } = await startUpstream(options)
  const { port: webhookPort } = await startScript('llm/guard-webhook.ts', (port) => [String(port)], {
    cpus: placement.upstream,
  })
  const start = async (name: string, guardrails: object | undefined, nodeFlags: readonly string[]) => {
    const tollgate = await startTollgate({
      upstreamPort,
      nodeFlags,
      entry,
      cpus: placement.gateway,
      workers: workersOf(options),
      ...(guardrails && { guardrails }),
    })
    return { ...tollgate, name }
  }
  const flags = options.nodeFlags
  const relayWithCalls = async () => {
    const relay = await startRelay(options, [upstreamPort, webhookPort])
    return { ...relay, name: 'relay+calls', end: () => stop(relay.child) }
  }
  return {
    workloads: chosenWorkloads(options, guardWorkloads),
    startRelay: (nodeFlags) => startRelay(options, [upstreamPort], nodeFlags),
    startGateway: (nodeFlags = flags) => start('tollgate', guardrailsAt(webhookPort, 'buffered'), nodeFlags),
    startOthers: async () => [
      await relayWithCalls(),
      await start('no guards', undefined, flags),
      await start('windowed', guardrailsAt(webhookPort, 'windowed'), flags),
    ],
  }
}

function startUpstream({ placement }: BenchOptions) {
  return startScript('llm/upstream.ts', (port) => [String(port)], { cpus: placement.upstream })
}

function startRelay({ placement }: BenchOptions, ports: number[], nodeFlags?: readonly string[]) {
  const args = (port: number) => [port, ...ports].map(String)
  return startScript('llm/relay.ts', args, { nodeFlags, cpus: placement.gateway })
}
