import type { Workload } from '../llm/workloads.ts'
import type { BenchOptions } from '../options.ts'
import type { PeerCommand } from '../peers/command.ts'
import type { PeerStageName } from '../peers/definition.ts'
import { type Peer, startPeer } from '../peers/peer.ts'
import { absentIn } from '../peers/peers.ts'
import type { TemplateValues } from '../peers/template.ts'
import { type LoadGenerator, type Subject, stop } from '../subjects/processes.ts'
import type { Tollgate } from '../subjects/tollgate.ts'
import { type Figures, measure, type Pace } from './measure.ts'

/** Workloads that are served by the same processes. */
export type Stage = {
  workloads: Workload[]
  startRelay(nodeFlags?: readonly string[]): Promise<Subject>
  startGateway(nodeFlags?: readonly string[]): Promise<Tollgate>
  /** Measured in the same rounds, for information. */
  startOthers?(): Promise<(Subject & { end(): Promise<void> })[]>
  /** Where peers can be measured: the name of their configuration, and values of its templates. */
  peers?: { name: PeerStageName; upstreamPort: number; values: TemplateValues }
}

export type WorkloadResult = {
  name: string
  title: string
  target: number
  relay: Figures
  tollgate: Figures
  /** For information. */
  others: Figures[]
  peers: PeerResult[]
}

/** Figures of a peer, with the work that Tollgate does in these workloads and the peer does not. */
export type PeerResult = { peer: string; without: readonly string[] } & (
  | { kind: 'measured'; figures: Figures }
  | { kind: 'unsupported' }
)

export function isChosen({ only }: BenchOptions, name: string): boolean {
  return only === undefined || only.some((chosen) => name === chosen || name.startsWith(`${chosen}-`))
}

/** The chosen ones of several workloads, with the number of connections of the run. */
export function chosenWorkloads(options: BenchOptions, all: readonly Workload[]): Workload[] {
  const chosen = all.filter(({ name }) => isChosen(options, name))
  const { connections } = options
  return connections === undefined ? chosen : chosen.map((workload) => ({ ...workload, connections }))
}

/** One worker beside the relay, which has one thread; as many as the CPUs allow beside other gateways. */
export function workersOf({ peers }: BenchOptions): number | 'auto' {
  return peers.length === 0 ? 1 : 'auto'
}

export function paceOf({ quick, rounds, secondsPerRound }: BenchOptions): Pace {
  return { rounds, secondsPerRound, warmUpSeconds: quick ? 0.3 : 3 }
}

/** Measures relay, Tollgate, peers and others with each workload of a stage, in alternating rounds. */
export async function compareStage(
  load: LoadGenerator,
  stage: Stage,
  options: BenchOptions,
): Promise<WorkloadResult[]> {
  if (stage.workloads.length === 0) return []
  const pace = paceOf(options)
  const relay = await stage.startRelay()
  const tollgate = await stage.startGateway()
  const peers = await startPeers(stage, options)
  const others = options.peers.length > 0 ? [] : ((await stage.startOthers?.()) ?? [])
  const results: WorkloadResult[] = []
  for (const workload of stage.workloads) {
    progress(`${workload.title}: ${pace.rounds} rounds of ${pace.secondsPerRound} s each`)
    const started = peers.flatMap(({ running }) => running ?? [])
    const subjects = [relay, tollgate, ...started, ...others]
    const [relayFigures, tollgateFigures, ...more] = await measure(load, subjects, { workload, pace }).catch(
      (error: unknown) => {
        for (const { name, output } of started) progress(`last output of ${name}:\n${output()}`)
        throw error
      },
    )
    tollgate.truncateLog()
    for (const peer of started) peer.truncateLog()
    if (!relayFigures || !tollgateFigures) continue
    const { name, title, target } = workload
    results.push({
      name,
      title,
      target,
      relay: relayFigures,
      tollgate: tollgateFigures,
      others: more.slice(started.length),
      peers: peers.map(({ command, without, running }) => {
        const figures = running && more[started.indexOf(running)]
        const common = { peer: command.name, without }
        return figures ? { ...common, kind: 'measured', figures } : { ...common, kind: 'unsupported' }
      }),
    })
  }
  await stop(relay.child)
  for (const subject of [tollgate, ...peers.flatMap(({ running }) => running ?? []), ...others]) {
    await subject.end()
  }
  return results
}

type StagePeer = { command: PeerCommand; without: readonly string[]; running?: Peer }

async function startPeers({ peers: stage }: Stage, options: BenchOptions): Promise<StagePeer[]> {
  const found: StagePeer[] = []
  for (const command of stage ? options.peers : []) {
    const without = stage && absentIn(command, stage.name)
    if (!stage || !without) {
      found.push({ command, without: [] })
      continue
    }
    progress(`starting ${command.name}`)
    const { name, upstreamPort, values } = stage
    const job = { stage: name, upstreamPort, values, cpus: options.placement.gateway }
    found.push({ command, without, running: await startPeer(command, job) })
  }
  return found
}

export function progress(text: string): void {
  process.stderr.write(`${text}\n`)
}
