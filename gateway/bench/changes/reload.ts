import { setTimeout as delay } from 'node:timers/promises'
import { httpPath, httpSections, httpWorkloads } from '../http/workloads.ts'
import type { LoadReport } from '../load/report.ts'
import { checked, median } from '../measure/measure.ts'
import type { Placement } from '../subjects/placement.ts'
import { type LoadGenerator, startScript, stop } from '../subjects/processes.ts'
import { startTollgate, type Tollgate } from '../subjects/tollgate.ts'

/** Request latency without reloads, and during reloads of configurations with this many routes. */
export type ReloadResult = {
  routes: number
  perSecond: number
  idle: ReloadFigures
  /** One route differs from the configuration before. */
  one: ReloadFigures
  /** Every route does. */
  all: ReloadFigures
}

/** The latencies are of all requests, `reloadMs` is the median time until a change of the file runs. */
export type ReloadFigures = Pick<LoadReport, 'requests' | 'p50Ms' | 'p99Ms' | 'maxMs'> & { reloadMs: number }

export type ReloadPace = { routes: number; perSecond: number; seconds: number }

/** Options of the measured program. */
export type ProgramOptions = {
  nodeFlags: readonly string[]
  entry: string | undefined
  placement: Placement
}

/** Latency under a steady load, with and without reloads of a long configuration. */
export async function compareReloads(
  load: LoadGenerator,
  pace: ReloadPace,
  options: ProgramOptions,
): Promise<ReloadResult> {
  const { routes: count } = pace
  const { placement } = options
  const upstream = await startScript('http/upstream.ts', (port) => [String(port)], {
    cpus: placement.upstream,
  })
  const sections = (mark: string, markOfOne: string) => (port: number) =>
    httpSections(port, upstream.port, { count, mark, markOfOne })
  const tollgate = await startTollgate({
    ...options,
    cpus: placement.gateway,
    upstreamPort: upstream.port,
    sections: sections('a', 'a'),
  })
  const requests = await requestsTo(tollgate, count)
  const drive = async (durationMs: number): Promise<LoadReport> =>
    checked(load, {
      kind: 'steady',
      port: tollgate.port,
      requests: requests.texts,
      connections: requests.texts.length,
      ending: requests.ending,
      durationMs,
      perSecond: pace.perSecond,
    })

  let round = 0
  async function reloading(change: 'one' | 'all'): Promise<ReloadFigures> {
    const durationMs = pace.seconds * 1000
    const until = performance.now() + durationMs
    const times: number[] = []
    const driven = drive(durationMs)
    while (performance.now() < until - 1000) {
      round += 1
      const marks = change === 'one' ? sections('a', `b${round}`) : sections(`c${round}`, `c${round}`)
      times.push(await reload(tollgate, marks(tollgate.port)))
    }
    const { requests: count, p50Ms, p99Ms, maxMs } = await driven
    return { requests: count, p50Ms, p99Ms, maxMs, reloadMs: median(times) }
  }

  await drive(3000)
  const { requests: idleRequests, p50Ms, p99Ms, maxMs } = await drive(pace.seconds * 1000)
  const idle = { requests: idleRequests, p50Ms, p99Ms, maxMs, reloadMs: 0 }
  const one = await reloading('one')
  const all = await reloading('all')
  await tollgate.end()
  await stop(upstream.child)
  return { routes: count, perSecond: pace.perSecond, idle, one, all }
}

async function requestsTo(tollgate: Tollgate, count: number): Promise<{ texts: string[]; ending: string }> {
  const [workload] = httpWorkloads((connection) => httpPath(connection, count))
  const texts = await workload?.requestsTo?.(tollgate)
  if (!workload || !texts) throw new Error('there is no request')
  return { texts, ending: workload.ending }
}

const appliedWithinMs = 60_000

/** Writes another configuration; answers after how many milliseconds it runs. */
async function reload(tollgate: Tollgate, sections: object): Promise<number> {
  const before = await revisionOf(tollgate)
  tollgate.reconfigure({ sections })
  const startedAt = performance.now()
  while ((await revisionOf(tollgate)) === before) {
    if (performance.now() > startedAt + appliedWithinMs)
      throw new Error(`a change of the file does not run after ${appliedWithinMs} ms`)
    await delay(50)
  }
  return performance.now() - startedAt
}

async function revisionOf({ adminPort }: Tollgate): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/config/status`)
  const status: { revision: number } = JSON.parse(await response.text())
  return status.revision
}
