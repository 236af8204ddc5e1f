import { workloads } from '../../bench/llm/workloads.ts'
import { median, residentAfter } from '../../bench/measure/measure.ts'
import { startLoad, startScript, stopAll } from '../../bench/subjects/processes.ts'
import { startTollgate } from '../../bench/subjects/tollgate.ts'

/** A million requests: resident memory may rise until everything is warm, and then stays where it is. */

const short = process.argv.includes('--short')
const total = short ? 15_000 : 1_000_000
const samples = 20
/**
 * Memory at the end against memory once warm; a short run is still warming up, so it only sees gross leaks.
 */
const allowedGrowth = short ? 1.5 : 1.1

async function main(): Promise<void> {
  const load = startLoad()
  const mock = await startScript('llm/upstream.ts', (port) => [String(port)])
  const tollgate = await startTollgate({ upstreamPort: mock.port })
  const [completion] = workloads
  if (!completion) throw new Error('there is no workload')
  const marks = Array.from({ length: samples }, (_, index) => Math.round(((index + 1) * total) / samples))
  const afterMark = tollgate.truncateLog
  const sizes = await residentAfter(load, tollgate, { workload: completion, marks, afterMark })
  await tollgate.end()

  const warm = median(sizes.slice(samples / 5, (samples * 2) / 5))
  const last = median(sizes.slice(-samples / 5))
  const growth = last / warm
  process.stdout.write(
    `MiB at each twentieth of ${total} requests: ${sizes.map((size) => size.toFixed(0)).join(' ')}\n`,
  )
  process.stdout.write(`growth once warm: ${growth.toFixed(3)}, allowed ${allowedGrowth}\n`)
  if (growth > allowedGrowth) throw new Error('memory grows')
}

try {
  await main()
} finally {
  await stopAll()
}
