import { spawnSync } from 'node:child_process'
import { nextTick } from 'node:process'
import { setImmediate as afterTicks } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { keepTickShape } from '../../src/lib/scheduling/keep-tick-shape.ts'

// CPU time of process.nextTick before and after garbage collections, with and without keepTickShape:
// node gateway/bench/tick.bench.ts
// One process for each case, because a hidden class that was dropped does not return.

const rounds = 25
const ticksPerRound = 10_000

/** Median over the rounds. */
async function tickNanoseconds(): Promise<number> {
  const figures: number[] = []
  for (let round = 0; round < rounds; round++) {
    const before = process.threadCpuUsage()
    for (let tick = 0; tick < ticksPerRound; tick++) nextTick(noop)
    await afterTicks()
    const { user, system } = process.threadCpuUsage(before)
    figures.push(((user + system) * 1_000) / ticksPerRound)
  }
  return figures.toSorted((a, b) => a - b)[rounds >> 1] ?? 0
}

function noop(): void {}

async function measure(isKept: boolean): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  if (isKept) keepTickShape()
  const before = await tickNanoseconds()
  for (let collection = 0; collection < 5; collection++) {
    collect()
    await afterTicks()
  }
  const after = await tickNanoseconds()
  const name = isKept ? 'shape kept' : 'shape not kept'
  console.log(
    `${name.padEnd(14)}  before ${before.toFixed(0).padStart(5)} ns/tick  after ${after.toFixed(0).padStart(5)} ns/tick`,
  )
}

const [mode] = process.argv.slice(2)
if (mode !== undefined) await measure(mode === 'kept')
else {
  for (const each of ['kept', 'dropped']) {
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), each], { stdio: 'inherit' })
  }
}
