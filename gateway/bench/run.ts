import { compareReloads, type ReloadResult } from './changes/reload.ts'
import { httpStage, manyRoutes } from './http/stage.ts'
import { compareLedger } from './ledger/ledger.ts'
import { providerStages } from './llm/providers.ts'
import { guardStage, llmStage } from './llm/stage.ts'
import { workloads } from './llm/workloads.ts'
import { measureLoop } from './loop/loop.ts'
import { renderLoop } from './loop/report.ts'
import { probeFlags, type SessionMemory, sessionMemory } from './mcp/sessions.ts'
import { mcpStage } from './mcp/stage.ts'
import { createIssuer } from './mcp/tokens.ts'
import { measure, median, residentAfter, streamKibibytes } from './measure/measure.ts'
import { compareProfiles, type Profiled, type ProfileReport, readProfile } from './measure/profile.ts'
import { type Result, renderReport } from './measure/report.ts'
import { compareStage, isChosen, paceOf, progress, type Stage } from './measure/stage.ts'
import { type BenchOptions, parseOptions } from './options.ts'
import { requirePeer } from './peers/peer.ts'
import { policyStage } from './policies/stage.ts'
import { describePlacement } from './subjects/placement.ts'
import { type LoadGenerator, startLoad, stop, stopAll } from './subjects/processes.ts'
import { isInstalled } from './subjects/programs.ts'
import { compareTcp, type TcpResult } from './tcp/tcp.ts'
import { compareWorkers } from './workers/workers.ts'

const options = optionsOrExit()
const pace = paceOf(options)
const mcpTokens = createIssuer()

async function main(): Promise<void> {
  if (options.only?.includes('loop') === true) {
    const loop = await measureLoop({ quick: options.quick, entry: options.entry })
    process.stdout.write(options.json ? `${JSON.stringify(loop, undefined, 2)}\n` : renderLoop(loop))
    return
  }
  const result = await measureAll(startLoad(options.placement.load))
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : renderReport(result))
}

async function measureAll(load: LoadGenerator): Promise<Result> {
  if (options.workers !== undefined) {
    const workers = await compareWorkers(load, options, options.workers)
    return { placement: describePlacement(options.placement), workloads: [], workers }
  }
  const [llm, mcp, http] = [
    await llmStage(options),
    await mcpStage(options, mcpTokens),
    await httpStage(options),
  ]
  const result: Result = { placement: describePlacement(options.placement), workloads: [] }
  const hasPeers = options.peers.length > 0
  const own = hasPeers
    ? []
    : [await guardStage(options), await policyStage(options), ...(await providerStages(options))]
  const stages = [llm, mcp, http, ...own]
  if (options.profile) {
    result.profile = await profile(load, stages.find((stage) => stage.workloads.length > 0) ?? neverEmpty())
    return result
  }
  for (const stage of stages) result.workloads.push(...(await compareStage(load, stage, options)))
  if (hasPeers) return result
  if (isChosen(options, 'ledger')) result.ledger = await compareLedger(load, options)
  if (isChosen(options, 'open-streams')) result.openStreams = await openStreams(load, llm)
  if (isChosen(options, 'mcp-sessions')) result.mcpSessions = await mcpSessions(mcp)
  if (isChosen(options, 'reload')) result.reload = await reload(load)
  if (isChosen(options, 'tcp')) result.tcp = await tcp()
  if (options.long) result.memory = await memory(load, llm)
  return result
}

/** A wrong command line ends the program before anything starts. */
function optionsOrExit(): BenchOptions {
  try {
    const parsed = parseOptions(process.argv.slice(2))
    parsed.peers.forEach(requirePeer)
    if (describePlacement(parsed.placement) !== '' && !isInstalled('taskset')) {
      throw new Error('--pin needs the program taskset: install util-linux')
    }
    return parsed
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(2)
  }
}

/** Each sample in a fresh process: memory that earlier work left behind would hide the growth. */
async function openStreams(load: LoadGenerator, { startRelay, startGateway }: Stage) {
  const streams = options.quick ? 50 : 1000
  const samples = options.quick ? 1 : 3
  progress(`${streams} open streams: ${samples} fresh processes each`)
  const relays: number[] = []
  const gateways: number[] = []
  for (let sample = 0; sample < samples; sample++) {
    const relay = await startRelay()
    relays.push(await streamKibibytes(load, relay, streams))
    await stop(relay.child)
    const tollgate = await startGateway()
    gateways.push(await streamKibibytes(load, tollgate, streams))
    await tollgate.end()
  }
  return { streams, relay: median(relays), tollgate: median(gateways) }
}

/** Medians over fresh processes. */
async function mcpSessions({ startGateway }: Stage): Promise<SessionMemory> {
  const sessions = options.quick ? 100 : 1000
  const samples: SessionMemory[] = []
  progress(`${sessions} idle MCP sessions`)
  for (let sample = 0; sample < (options.quick ? 1 : 3); sample++) {
    const tollgate = await startGateway([...options.nodeFlags, ...probeFlags])
    samples.push(await sessionMemory(tollgate, mcpTokens, sessions))
    await tollgate.end()
  }
  return {
    sessions,
    heapKilobytes: median(samples.map((sample) => sample.heapKilobytes)),
    residentKilobytes: median(samples.map((sample) => sample.residentKilobytes)),
  }
}

function reload(load: LoadGenerator): Promise<ReloadResult> {
  const seconds = options.quick ? 6 : 30
  progress(`reloads of ${manyRoutes} routes: ${seconds} s each without, of one route, of all`)
  return compareReloads(load, { routes: manyRoutes, perSecond: 500, seconds }, options)
}

function tcp(): Promise<TcpResult> {
  const mebibytes = options.quick ? 64 : 1024
  progress(`TCP: ${pace.rounds} rounds of ${mebibytes} MiB each`)
  return compareTcp({ rounds: pace.rounds, mebibytes, connections: options.quick ? 100 : 1000 }, options)
}

async function memory(load: LoadGenerator, { startRelay, startGateway }: Stage) {
  const thousand = options.quick ? 10 : 1000
  const requests = [50, 200, 400, 600, 800, 1000].map((count) => count * thousand)
  const workload = workloads[0] ?? neverEmpty()
  progress(`memory over ${requests.at(-1)} requests`)
  const relay = await startRelay()
  const relaySizes = await residentAfter(load, relay, { workload, marks: requests })
  await stop(relay.child)
  const tollgate = await startGateway()
  const sizes = await residentAfter(load, tollgate, {
    workload,
    marks: requests,
    afterMark: tollgate.truncateLog,
  })
  await tollgate.end()
  return { requests, relay: relaySizes, tollgate: sizes }
}

/** Profiles both subjects, so that the report shows the difference and not the cost of the runtime. */
async function profile(load: LoadGenerator, stage: Stage): Promise<ProfileReport> {
  const [workload = neverEmpty()] = stage.workloads
  progress(`profile of: ${workload.title}`)
  const profiler = ['--cpu-prof', '--cpu-prof-interval=200']
  const tollgate = await stage.startGateway([...options.nodeFlags, ...profiler])
  const relay = await stage.startRelay([...profiler, `--cpu-prof-dir=${tollgate.folder}`])
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

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void stopAll().finally(() => process.exit(1)))
}

try {
  await main()
} finally {
  await stopAll()
}
