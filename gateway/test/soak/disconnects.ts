import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { heldModel, requestBody, workloads } from '../../bench/llm/workloads.ts'
import { checked, httpRequest, runOrder } from '../../bench/measure/measure.ts'
import { residentMebibytes, startLoad, startScript, stopAll } from '../../bench/subjects/processes.ts'
import { startTollgate } from '../../bench/subjects/tollgate.ts'

/**
 * Clients that leave their streams at any moment: no connection stays behind, memory stays, and others are
 * served.
 */

const short = process.argv.includes('--short')
const rounds = short ? 4 : 60
const secondsPerRound = short ? 1 : 10
const allowedGrowth = short ? 2 : 1.3
/** Kept-alive connections to the upstream, listeners and files. */
const allowedDescriptors = 150

async function main(): Promise<void> {
  const load = startLoad()
  const mock = await startScript('llm/upstream.ts', (port) => [String(port)])
  const tollgate = await startTollgate({ upstreamPort: mock.port })
  const stream = workloads.find(({ name }) => name === 'stream')
  if (!stream) throw new Error('there is no workload')
  const descriptors = () => readdirSync(`/proc/${tollgate.child.pid}/fd`).length

  const sizes: number[] = []
  let left = 0
  for (let round = 0; round < rounds; round++) {
    // In turn streams that flow, and streams that stand still when the client leaves.
    const body = round % 2 === 0 ? stream.body : requestBody(heldModel, true, 1024)
    const order = { port: tollgate.port, request: httpRequest(tollgate, body), connections: 50 }
    left += (await checked(load, { kind: 'churn', ...order, durationMs: secondsPerRound * 1000 })).requests
    await checked(load, runOrder(tollgate, stream, { durationMs: 300 }))
    tollgate.truncateLog()
    sizes.push(residentMebibytes(tollgate.child))
  }
  await delay(1000)
  const open = descriptors()
  await tollgate.end()

  const growth = (sizes.at(-1) ?? 0) / (sizes[Math.floor(rounds / 4)] ?? 1)
  process.stdout.write(
    `${left} streams left early; open descriptors afterwards: ${open}, allowed ${allowedDescriptors}\n`,
  )
  process.stdout.write(`MiB: ${sizes.map(Math.round).join(' ')}\n`)
  process.stdout.write(`growth after the first quarter: ${growth.toFixed(2)}, allowed ${allowedGrowth}\n`)
  if (open > allowedDescriptors) throw new Error('connections stay behind')
  if (growth > allowedGrowth) throw new Error('memory grows')
}

try {
  await main()
} finally {
  await stopAll()
}
