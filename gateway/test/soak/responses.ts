import { availableParallelism } from 'node:os'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type Comparison, compareResponses } from '../support/responses/compare.ts'

/**
 * Compares the parser of upstream responses with llhttp on millions of random responses near the borders of
 * the grammar. `--seed N` repeats a run.
 */

const short = process.argv.includes('--short')
const cases = short ? 100_000 : 5_000_000
const casesPerBatch = 10_000
const seed = Number(process.argv[process.argv.indexOf('--seed') + 1]) || 1

async function main(): Promise<void> {
  const threads = availableParallelism()
  const batches = Array.from({ length: cases / casesPerBatch }, (_, index) => seed * 1_000_000 + index)
  const shares = Array.from({ length: threads }, (_, thread) =>
    batches.filter((_, index) => index % threads === thread),
  )
  const comparisons = (await Promise.all(shares.map(compareOnThread))).flat()
  const sum = (read: (comparison: Comparison) => number) =>
    comparisons.reduce((total, comparison) => total + read(comparison), 0)
  process.stdout.write(
    `${sum((one) => one.cases)} responses compared: ${sum((one) => one.accepted)} accepted by both, ` +
      `${sum((one) => one.stricter)} by llhttp only, ${sum((one) => one.refused)} by neither\n`,
  )
}

function compareOnThread(seeds: number[]): Promise<Comparison[]> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: seeds })
    worker.on('message', resolve)
    worker.on('error', reject)
  })
}

if (isMainThread) await main()
else {
  const seeds: number[] = workerData
  parentPort?.postMessage(seeds.map((one) => compareResponses({ seed: one, cases: casesPerBatch })))
}
