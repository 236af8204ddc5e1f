import { setTimeout as delay } from 'node:timers/promises'
import { workloads } from '../../bench/llm/workloads.ts'
import { checked, runOrder } from '../../bench/measure/measure.ts'
import { residentMebibytes, startLoad, startScript, stopAll } from '../../bench/subjects/processes.ts'
import { startTollgate, type Tollgate } from '../../bench/subjects/tollgate.ts'

/**
 * Config after config under load, every fourth one broken: no request fails, every good one is applied,
 * memory stays.
 */

const short = process.argv.includes('--short')
const rounds = short ? 8 : 400
/** Far more than it takes: two processors share it with the load, the upstream and perhaps others. */
const appliedWithinMs = 30_000
/** Old configurations are garbage until the collector comes round, so a short run sees more than is kept. */
const allowedGrowth = short ? 3 : 1.4

type Status = { synchronized: boolean; revision: number }

async function main(): Promise<void> {
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
  try {
    for (let round = 1; round <= rounds; round++) {
      const before = await statusOf(tollgate)
      const broken = round % 4 === 0
      tollgate.reconfigure(broken ? { text: `llm: {models: ${round}}` } : { extraKey: `tg-soak-${round}` })
      await noticed(tollgate, (status) =>
        broken ? !status.synchronized : status.synchronized && status.revision > before.revision,
      )
      sizes.push(residentMebibytes(tollgate.child))
    }
  } finally {
    storming = false
  }
  const requests = await served
  await tollgate.end()

  const growth = (sizes.at(-1) ?? 0) / (sizes[Math.floor(rounds / 4)] ?? 1)
  process.stdout.write(`${requests} requests served during ${rounds} reloads\n`)
  process.stdout.write(
    `MiB: ${sizes
      .filter((_, index) => index % Math.ceil(rounds / 20) === 0)
      .map(Math.round)
      .join(' ')}\n`,
  )
  process.stdout.write(`growth after the first quarter: ${growth.toFixed(2)}, allowed ${allowedGrowth}\n`)
  if (growth > allowedGrowth) throw new Error('memory grows')

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
  await main()
} finally {
  await stopAll()
}
