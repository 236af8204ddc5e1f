import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { workloads } from '../llm/workloads.ts'
import { checked, median, runOrder } from '../measure/measure.ts'
import { paceOf, progress } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { type LoadGenerator, startScript, stop } from '../subjects/processes.ts'
import { startTollgate, type Tollgate } from '../subjects/tollgate.ts'
import { allThreadTimes } from '../workers/threads.ts'

/** CPU time per request in microseconds: of the thread of traffic, of the writer, of all other threads. */
export type LedgerCost = { traffic: number; writer: number; others: number }

export type LedgerFigures = {
  subject: string
  requests: number
  /** The lowest round of each figure, and the median of the rounds. */
  least: LedgerCost
  middle: LedgerCost
  /** Medians of the differences from the first subject, round by round, with their quartiles. */
  more: { traffic: number; lowTraffic: number; highTraffic: number }
}

const unlimitedDollars = 1_000_000_000
const prices = {
  modelCatalog: [
    {
      inline: {
        providers: { openai: { models: { 'bench-model': { rates: { input: '2.5', output: '10' } } } } },
      },
    },
  ],
}
const withLedger = (folder: string) => ({
  ...prices,
  logging: { database: { url: `sqlite://${join(folder, 'ledger.db')}` }, explain: 'errors' },
})
const budgets = [
  { name: 'key', limit: { usd: unlimitedDollars }, window: '24h', key: 'apiKey.id' },
  { name: 'group', limit: { tokens: 1e15 }, window: 'month', timeZone: 'Europe/Berlin', key: 'apiKey.group' },
]

type Variant = { name: string; config: (folder: string) => object; policies?: object }

const variants: readonly Variant[] = [
  { name: 'without', config: () => prices },
  { name: 'ledger', config: withLedger },
  { name: 'ledger, 2 budgets', config: withLedger, policies: { budgets } },
]

/** Measures completions without a ledger, with one (explanations of errors), and with two budgets as well. */
export async function compareLedger(load: LoadGenerator, options: BenchOptions): Promise<LedgerFigures[]> {
  const { placement, entry, nodeFlags } = options
  const upstream = await startScript('llm/upstream.ts', (port) => [String(port)], {
    cpus: placement.upstream,
  })
  const subjects: Subject[] = []
  for (const { name, ...variant } of variants) {
    const common = { upstreamPort: upstream.port, nodeFlags, entry, cpus: placement.gateway, workers: 1 }
    const tollgate = await startTollgate({ ...common, ...variant })
    subjects.push({ ...tollgate, name })
  }
  const costs = await measureRounds(load, subjects, options)
  for (const subject of subjects) await subject.end()
  await stop(upstream.child)
  return subjects.map((subject) => figuresOf(subject, costs))
}

/** The engine optimizes code by its number of runs, not by time. */
const warmUpRequests = 20_000

type Subject = Tollgate
type Round = LedgerCost & { requests: number }
type Rounds = Map<Subject, Round[]>

async function measureRounds(
  load: LoadGenerator,
  subjects: readonly Subject[],
  options: BenchOptions,
): Promise<Rounds> {
  const { rounds, secondsPerRound } = paceOf(options)
  const warmUp = { maxRequests: options.quick ? 500 : warmUpRequests }
  progress(`completions with a ledger: ${rounds} rounds of ${secondsPerRound} s each`)
  for (const subject of subjects) await oneRound(load, subject, warmUp)
  const costs: Rounds = new Map(subjects.map((subject) => [subject, []]))
  for (let round = 0; round < rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
      costs.get(subject)?.push(await oneRound(load, subject, { durationMs: secondsPerRound * 1000 }))
    }
  }
  return costs
}

type Limit = { durationMs?: number; maxRequests?: number }

async function oneRound(load: LoadGenerator, subject: Subject, limit: Limit): Promise<Round> {
  const [workload] = workloads
  if (workload === undefined) throw new Error('there is no workload')
  const before = readTimes(subject)
  const { requests } = await checked(load, runOrder(subject, workload, limit))
  const { traffic } = readTimes(subject)
  const after = await idleTimes(subject)
  subject.truncateLog()
  const each = (nanoseconds: number) => nanoseconds / 1000 / requests
  return {
    requests,
    traffic: each(traffic - before.traffic),
    writer: each(after.writer - before.writer),
    others: each(after.others - before.others),
  }
}

/** CPU times in nanoseconds. The data plane is on the main thread. */
function readTimes({ child: { pid = 0 } }: Subject): LedgerCost {
  const times = { traffic: 0, writer: 0, others: 0 }
  for (const { id, name, nanoseconds } of allThreadTimes(pid)) {
    const kind = id === pid ? 'traffic' : name === 'ledger writer' ? 'writer' : 'others'
    times[kind] += nanoseconds
  }
  return times
}

const idleNanoseconds = 20_000_000
const idleWithinMs = 30_000

/** The times when the writer has written what waits. */
async function idleTimes(subject: Subject): Promise<LedgerCost> {
  const deadline = performance.now() + idleWithinMs
  let times = readTimes(subject)
  while (times.writer > 0 && performance.now() < deadline) {
    await delay(300)
    const next = readTimes(subject)
    const spent = next.writer - times.writer
    times = next
    if (spent < idleNanoseconds) break
  }
  return times
}

function figuresOf(subject: Subject, costs: Rounds): LedgerFigures {
  const rounds = costs.get(subject) ?? []
  const [first = []] = costs.values()
  const over = (reduce: (values: number[]) => number): LedgerCost => ({
    traffic: reduce(rounds.map(({ traffic }) => traffic)),
    writer: reduce(rounds.map(({ writer }) => writer)),
    others: reduce(rounds.map(({ others }) => others)),
  })
  const differences = rounds
    .map(({ traffic }, index) => traffic - (first[index]?.traffic ?? 0))
    .toSorted((a, b) => a - b)
  const quantile = (share: number) => differences[Math.floor((differences.length - 1) * share)] ?? 0
  return {
    subject: subject.name,
    requests: rounds.reduce((sum, { requests }) => sum + requests, 0),
    least: over((values) => Math.min(...values)),
    middle: over(median),
    more: { traffic: median(differences), lowTraffic: quantile(0.25), highTraffic: quantile(0.75) },
  }
}

const targetMicros = 6

/** The figures as a table. */
export function renderLedger(figures: readonly LedgerFigures[]): string[] {
  const [first] = figures
  const cells = (values: readonly number[]) => values.map((value) => value.toFixed(1).padStart(9)).join('')
  const row = ({ subject, least, middle }: LedgerFigures) =>
    [least, middle]
      .map(({ traffic, writer, others }) => cells([traffic, writer, others]))
      .join('  |')
      .replace(/^/, `  ${subject.padEnd(20)}`)
  const difference = ({ subject, least, more }: LedgerFigures) =>
    `  ${subject}: ${(least.traffic - (first?.least.traffic ?? 0)).toFixed(1)} us more on the thread of traffic ` +
    `in the lowest rounds; ${more.traffic.toFixed(1)} in the median (quartiles ${more.lowTraffic.toFixed(1)} ` +
    `to ${more.highTraffic.toFixed(1)}; target at most ${targetMicros})`
  return [
    '1 kB chat completion, CPU us/request: thread of traffic, writer, other threads (lowest | median)',
    ...figures.map(row),
    ...figures.slice(1).map(difference),
    '',
  ]
}
