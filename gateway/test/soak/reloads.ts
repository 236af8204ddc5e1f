import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { workloads } from '../../bench/llm/workloads.ts'
import { checked, runOrder } from '../../bench/measure/measure.ts'
import { residentMebibytes, startLoad, startScript, stopAll } from '../../bench/subjects/processes.ts'
import { startTollgate, type Tollgate } from '../../bench/subjects/tollgate.ts'

/**
 * Configuration after configuration under load, on one and on four data planes, every fourth one broken: no
 * request fails, every good one is applied, and memory, threads and file descriptors remain.
 */

const short = process.argv.includes('--short')
const rounds = short ? 4 : 500
/** Far more than it takes: two processors share it with the load, the upstream and perhaps others. */
const appliedWithinMs = 30_000
/** Old configurations are garbage until the collector comes round, so a short run sees more than is kept. */
const allowedGrowth = short ? 3 : 1.4
/** Threads of the pool and connections of the load come and go. */
const allowedMore = 40

type Status = { synchronized: boolean; revision: number }

async function main(workerThreads: number): Promise<void> {
  process.env['WORKER_THREADS'] = String(workerThreads)
  const load = startLoad()
  const mock = await startScript('llm/upstream.ts', (port) => [String(port)])
  const tollgate = await startTollgate({ upstreamPort: mock.port })
  const [completion] = workloads
  if (!completion) throw new Error('there is no workload')

  let storming = true
  const served = serveUntil(() => storming)
  // After a failure of the campaign, the end of this loop is not the error to report.
  served.catch(() => undefined)
  const sizes: number[] = []
  const resources: Resources[] = []
  try {
    for (let round = 1; round <= rounds; round++) {
      const before = await statusOf(tollgate)
      const broken = round % 4 === 0
      tollgate.reconfigure(broken ? { text: `llm: {models: ${round}}` } : { extraKey: `tg-soak-${round}` })
      await noticed(tollgate, (status) =>
        broken ? !status.synchronized : status.synchronized && status.revision > before.revision,
      )
      sizes.push(residentMebibytes(tollgate.child))
      resources.push(resourcesOf(tollgate))
    }
  } finally {
    storming = false
  }
  const requests = await served
  await tollgate.end()

  const growth = (sizes.at(-1) ?? 0) / (sizes[Math.floor(rounds / 4)] ?? 1)
  const early = resources[Math.floor(rounds / 4)]
  const late = resources.at(-1)
  process.stdout.write(
    `${requests} requests served by ${workerThreads} data planes during ${rounds} reloads\n`,
  )
  process.stdout.write(`threads and descriptors: ${JSON.stringify(early)}, then ${JSON.stringify(late)}\n`)
  process.stdout.write(
    `MiB: ${sizes
      .filter((_, index) => index % Math.ceil(rounds / 20) === 0)
      .map(Math.round)
      .join(' ')}\n`,
  )
  process.stdout.write(`growth after the first quarter: ${growth.toFixed(2)}, allowed ${allowedGrowth}\n`)
  if (growth > allowedGrowth) throw new Error('memory grows')
  if (early !== undefined && late !== undefined) {
    if (late.threads > early.threads + allowedMore) throw new Error('the number of threads grows')
    if (late.descriptors > early.descriptors + allowedMore)
      throw new Error('the number of file descriptors grows')
  }

  /**
   * In pieces of a second, because the load generator takes one order at a time. A failed request ends the
   * campaign.
   */
  async function serveUntil(going: () => boolean): Promise<number> {
    let count = 0
    while (going() && completion) {
      count += (await checked(load, runOrder(tollgate, completion, { durationMs: 1000 }))).requests
      tollgate.truncateLog()
    }
    return count
  }
}

type Resources = { threads: number; descriptors: number }

/** Threads and open file descriptors, sockets included. */
function resourcesOf({ child }: Tollgate): Resources {
  const of = (folder: string) => readdirSync(`/proc/${child.pid}/${folder}`).length
  return { threads: of('task'), descriptors: of('fd') }
}

async function noticed(tollgate: Tollgate, wanted: (status: Status) => boolean): Promise<void> {
  const deadline = Date.now() + appliedWithinMs
  while (!wanted(await statusOf(tollgate))) {
    if (Date.now() > deadline)
      throw new Error(`a change of the file was not noticed within ${appliedWithinMs} ms`)
    await delay(50)
  }
}

async function statusOf({ adminPort }: Tollgate): Promise<Status> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/config/status`)
  const status: Status = JSON.parse(await response.text())
  return status
}

try {
  for (const workerThreads of [1, 4]) await main(workerThreads)
} finally {
  await stopAll()
}
