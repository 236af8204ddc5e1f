import type { ReloadFigures, ReloadResult } from '../changes/reload.ts'
import { type LedgerFigures, renderLedger } from '../ledger/ledger.ts'
import type { SessionMemory } from '../mcp/sessions.ts'
import type { TcpFigures, TcpResult } from '../tcp/tcp.ts'
import { renderWorkers } from '../workers/report.ts'
import type { WorkersResult } from '../workers/workers.ts'
import type { Figures } from './measure.ts'
import type { ProfileLine, ProfileReport } from './profile.ts'
import type { PeerResult, WorkloadResult } from './stage.ts'

export type Result = {
  /** CPUs by role, empty if the processes are not pinned. */
  placement: string
  workloads: WorkloadResult[]
  ledger?: LedgerFigures[]
  /** KiB for each open stream. */
  openStreams?: { streams: number; relay: number; tollgate: number }
  mcpSessions?: SessionMemory
  reload?: ReloadResult
  tcp?: TcpResult
  workers?: WorkersResult
  /** MiB after so many requests. */
  memory?: { requests: number[]; relay: number[]; tollgate: number[] }
  profile?: ProfileReport
}

const targets = { reloadP99Ms: 50, tcpThroughput: 0.8, openStreams: 1.3, memory: 1.4, sessionKilobytes: 30 }

/** The figures as a table for people. */
export function renderReport(result: Result): string {
  const parts: string[] = result.placement === '' ? [] : [`CPUs: ${result.placement}`, '']
  for (const { title, target, relay, tollgate, others, peers } of result.workloads) {
    const ratio = tollgate.cpuMicrosPerRequest / relay.cpuMicrosPerRequest
    parts.push(
      title,
      columns(['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU us/request', 'RSS MiB']),
      row(relay),
      row(tollgate),
      ...peers.flatMap((peer) => (peer.kind === 'measured' ? row(peer.figures) : [])),
      ...others.map(row),
      `  CPU ratio ${against(ratio, target)}, RSS ratio ${(tollgate.residentMebibytes / relay.residentMebibytes).toFixed(2)}`,
      ...others.map(
        (other) =>
          `  ${other.subject}: ${(other.cpuMicrosPerRequest / tollgate.cpuMicrosPerRequest).toFixed(2)} of tollgate's CPU, ` +
          `${(other.cpuMicrosPerRequest / relay.cpuMicrosPerRequest).toFixed(2)} of the relay's`,
      ),
      ...peers.flatMap((peer) => peerLines(peer, tollgate)),
      '',
    )
  }
  if (result.ledger) parts.push(...renderLedger(result.ledger))
  if (result.openStreams) {
    const { streams, relay, tollgate } = result.openStreams
    const ratio = against(tollgate / relay, targets.openStreams)
    parts.push(
      `${streams} open streams, memory of each`,
      `  relay ${relay.toFixed(1)} KiB, tollgate ${tollgate.toFixed(1)} KiB, ratio ${ratio}`,
      '',
    )
  }
  if (result.mcpSessions) {
    const { sessions, heapKilobytes, residentKilobytes } = result.mcpSessions
    parts.push(
      `${sessions} idle MCP sessions, memory of each (target under ${targets.sessionKilobytes} kB)`,
      `  heap ${heapKilobytes.toFixed(1)} kB, resident ${residentKilobytes.toFixed(1)} kB`,
      '',
    )
  }
  if (result.reload) parts.push(...reloadLines(result.reload))
  if (result.tcp) parts.push(...tcpLines(result.tcp))
  if (result.workers) parts.push(...renderWorkers(result.workers))
  if (result.memory) parts.push(...memoryLines(result.memory))
  if (result.profile) {
    parts.push(
      ...profileLines('by part', result.profile.parts),
      ...profileLines('by function', result.profile.functions),
    )
  }
  return `${parts.join('\n')}\n`
}

function peerLines(peer: PeerResult, tollgate: Figures): string[] {
  if (peer.kind === 'unsupported') return [`  ${peer.peer}: no configuration for this workload`]
  const ratio = (read: (figures: Figures) => number) => (read(tollgate) / read(peer.figures)).toFixed(2)
  const without = peer.without.length === 0 ? '' : `; it works without: ${peer.without.join(', ')}`
  return [
    `  tollgate / ${peer.peer}: CPU ${ratio((one) => one.cpuMicrosPerRequest)}, ` +
      `requests/s ${ratio((one) => one.requestsPerSecond)}, p50 ${ratio((one) => one.p50Ms)}, ` +
      `p99 ${ratio((one) => one.p99Ms)}, RSS ${ratio((one) => one.residentMebibytes)}${without}`,
  ]
}

function reloadLines({ routes, perSecond, idle, one, all }: ReloadResult): string[] {
  const line = (name: string, figures: ReloadFigures) =>
    columns([
      name,
      String(figures.requests),
      ...[figures.p50Ms, figures.p99Ms, figures.maxMs].map((ms) => ms.toFixed(1)),
      figures.reloadMs.toFixed(0),
    ])
  return [
    `reloads of ${routes} routes one after another, at ${perSecond} requests/s (p99 under ${targets.reloadP99Ms} ms)`,
    columns(['changed', 'requests', 'p50 ms', 'p99 ms', 'max ms', 'reload ms']),
    line('nothing', idle),
    line('one route', one),
    line('all', all),
    '',
  ]
}

function tcpLines({ relay, tollgate }: TcpResult): string[] {
  const ratio = (read: (figures: TcpFigures) => number) => (read(tollgate) / read(relay)).toFixed(2)
  const line = (name: string, figures: TcpFigures) =>
    columns([
      name,
      figures.mebibytesPerSecond.toFixed(0),
      figures.cpuSecondsPerGibibyte.toFixed(2),
      figures.connectMicros.toFixed(0),
    ])
  const throughput = ratio((figures) => figures.mebibytesPerSecond)
  const cpu = ratio((figures) => figures.cpuSecondsPerGibibyte)
  return [
    'TCP route, two connections in each direction',
    columns(['', 'MiB/s', 'CPU s/GiB', 'CPU us/conn']),
    line('relay', relay),
    line('tollgate', tollgate),
    `  throughput ratio ${throughput} (target at least ${targets.tcpThroughput.toFixed(2)}), CPU ratio ${cpu}`,
    '',
  ]
}

const linesOfProfile = 40

function profileLines(title: string, lines: readonly ProfileLine[]): string[] {
  const sum = (read: (line: ProfileLine) => number) => lines.reduce((total, line) => total + read(line), 0)
  const total = { place: 'all', relay: sum((line) => line.relay), tollgate: sum((line) => line.tollgate) }
  return [
    `self time ${title}, us/request: relay, tollgate, difference`,
    ...[total, ...lines.slice(0, linesOfProfile)].map(({ place, relay, tollgate }) => {
      const cells = [relay, tollgate, tollgate - relay].map((value) => value.toFixed(2).padStart(9))
      return `${cells.join('')}  ${place}`
    }),
    '',
  ]
}

function memoryLines({ requests, relay, tollgate }: NonNullable<Result['memory']>): string[] {
  const lines = [
    `resident memory after requests, ratio at most ${targets.memory.toFixed(2)}`,
    columns(['requests', 'relay MiB', 'tollgate MiB', 'ratio']),
  ]
  requests.forEach((count, index) => {
    const [ours, theirs] = [tollgate[index] ?? 0, relay[index] ?? 1]
    lines.push(columns([String(count), theirs.toFixed(1), ours.toFixed(1), (ours / theirs).toFixed(2)]))
  })
  return [...lines, '']
}

function row(figures: Figures): string {
  return columns([
    figures.subject,
    figures.requestsPerSecond.toFixed(0),
    figures.p50Ms.toFixed(2),
    figures.p99Ms.toFixed(2),
    figures.cpuMicrosPerRequest.toFixed(1),
    figures.residentMebibytes.toFixed(1),
  ])
}

function columns(cells: readonly string[]): string {
  return `  ${cells.map((cell, index) => (index === 0 ? cell.padEnd(12) : cell.padStart(15))).join('')}`
}

function against(ratio: number, target: number): string {
  return `${ratio.toFixed(2)} (target at most ${target.toFixed(2)})`
}
