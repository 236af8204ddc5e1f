import { parseArgs } from 'node:util'
import { measure, median, type Pace, residentAfter, streamKibibytes } from './measure.ts'
import { type LoadGenerator, type Subject, startLoad, startScript, stop, stopAll } from './processes.ts'
import { compareProfiles, type Profiled, type ProfileReport, readProfile } from './profile.ts'
import { type Result, renderReport } from './report.ts'
import { startTollgate } from './tollgate.ts'
import { type Workload, workloads } from './workloads.ts'

const { values: options } = parseArgs({
  options: {
    /** Shorter rounds, fewer streams: for a look, or to see that the benchmark runs. */
    quick: { type: 'boolean', default: false },
    /** Memory over a million requests as well. */
    long: { type: 'boolean', default: false },
    /** Where the CPU time of both goes, instead of how much it is. */
    profile: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    /** One workload: completion, prompt, stream, open-streams. */
    only: { type: 'string' },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    /** A flag of the runtime for Tollgate, may be repeated. */
    'node-flag': { type: 'string', multiple: true, default: [] },
    /** Another program to measure than the source, for example the bundle. */
    entry: { type: 'string' },
  },
})

const pace: Pace = {
  rounds: Number(options.rounds ?? (options.quick ? 3 : 5)),
  secondsPerRound: Number(options.seconds ?? (options.quick ? 0.3 : 2)),
  warmUpSeconds: options.quick ? 0.3 : 3,
}
const chosen = workloads.filter((workload) => !options.only || workload.name === options.only)

async function main(): Promise<void> {
  const load = startLoad()
  const mock = await startScript('./mock-upstream.ts', (port) => [String(port)])
  const result: Result = { workloads: [] }
  if (options.profile) {
    result.profile = await profile(load, mock.port, chosen[0] ?? workloads[0])
  } else {
    if (chosen.length > 0) result.workloads = await compare(load, mock.port)
    if (!options.only || options.only === 'open-streams')
      result.openStreams = await openStreams(load, mock.port)
    if (options.long) result.memory = await memory(load, mock.port)
  }
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : renderReport(result))
}

function startRelay(upstreamPort: number, nodeFlags: readonly string[] = []): Promise<Subject> {
  return startScript('./relay.ts', (port) => [String(port), String(upstreamPort)], nodeFlags)
}

function startGateway(upstreamPort: number, nodeFlags: readonly string[] = options['node-flag']) {
  return startTollgate({ upstreamPort, nodeFlags, entry: options.entry })
}

async function compare(load: LoadGenerator, upstreamPort: number): Promise<Result['workloads']> {
  const relay = await startRelay(upstreamPort)
  const tollgate = await startGateway(upstreamPort)
  const results: Result['workloads'] = []
  for (const workload of chosen) {
    progress(`${workload.title}: ${pace.rounds} rounds of ${pace.secondsPerRound} s each`)
    const [relayFigures, tollgateFigures] = await measure(load, [relay, tollgate], { workload, pace })
    tollgate.truncateLog()
    if (!relayFigures || !tollgateFigures) continue
    const { name, title, target } = workload
    results.push({ name, title, target, relay: relayFigures, tollgate: tollgateFigures })
  }
  await stop(relay.child)
  await tollgate.end()
  return results
}

/** Each sample in a fresh process: memory that earlier work left behind would hide the growth. */
async function openStreams(load: LoadGenerator, upstreamPort: number) {
  const streams = options.quick ? 50 : 1000
  const samples = options.quick ? 1 : 3
  progress(`${streams} open streams: ${samples} fresh processes each`)
  const relays: number[] = []
  const gateways: number[] = []
  for (let sample = 0; sample < samples; sample++) {
    const relay = await startRelay(upstreamPort)
    relays.push(await streamKibibytes(load, relay, streams))
    await stop(relay.child)
    const tollgate = await startGateway(upstreamPort)
    gateways.push(await streamKibibytes(load, tollgate, streams))
    await tollgate.end()
  }
  return { streams, relay: median(relays), tollgate: median(gateways) }
}

async function memory(load: LoadGenerator, upstreamPort: number) {
  const thousand = options.quick ? 10 : 1000
  const requests = [50, 200, 400, 600, 800, 1000].map((count) => count * thousand)
  const workload = workloads[0] ?? neverEmpty()
  progress(`memory over ${requests.at(-1)} requests`)
  const relay = await startRelay(upstreamPort)
  const relaySizes = await residentAfter(load, relay, { workload, marks: requests })
  await stop(relay.child)
  const tollgate = await startGateway(upstreamPort)
  const sizes = await residentAfter(load, tollgate, {
    workload,
    marks: requests,
    afterMark: tollgate.truncateLog,
  })
  await tollgate.end()
  return { requests, relay: relaySizes, tollgate: sizes }
}

/** Both subjects under the profiler, so that what is shown is the difference and not the price of the runtime. */
async function profile(
  load: LoadGenerator,
  upstreamPort: number,
  workload: Workload = neverEmpty(),
): Promise<ProfileReport> {
  progress(`profile of: ${workload.title}`)
  const profiler = ['--cpu-prof', '--cpu-prof-interval=200']
  const tollgate = await startGateway(upstreamPort, [...options['node-flag'], ...profiler])
  const relay = await startRelay(upstreamPort, [...profiler, `--cpu-prof-dir=${tollgate.folder}`])
  const profiled: Profiled[] = []
  for (const subject of [tollgate, relay]) {
    await measure(load, [subject], { workload, pace: { ...pace, rounds: 1 } })
    const sinceMicros = Number(process.hrtime.bigint() / 1000n)
    const [figures] = await measure(load, [subject], {
      workload,
      pace: { ...pace, rounds: 2, warmUpSeconds: 0 },
    })
    await stop(subject.child)
    const requests = figures?.requests ?? 1
    profiled.push({ profile: readProfile(tollgate.folder, subject.child.pid), sinceMicros, requests })
  }
  await tollgate.end()
  const [ours = neverEmpty(), theirs = neverEmpty()] = profiled
  return compareProfiles(ours, theirs)
}

function neverEmpty(): never {
  throw new Error('there is no such workload')
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`)
}

try {
  await main()
} finally {
  await stopAll()
}
