import { parseArgs } from 'node:util'
import { compareReloads, type ReloadResult } from './changes/reload.ts'
import { httpPath, httpSections, httpWorkloads } from './http/workloads.ts'
import { guardrailsAt, guardWorkloads } from './llm/guards.ts'
import { type Workload, workloads } from './llm/workloads.ts'
import { measureLoop } from './loop/loop.ts'
import { renderLoop } from './loop/report.ts'
import { probeFlags, type SessionMemory, sessionMemory } from './mcp/sessions.ts'
import { createIssuer } from './mcp/tokens.ts'
import { mcpConfig, mcpWorkloads } from './mcp/workloads.ts'
import { measure, median, type Pace, residentAfter, streamKibibytes } from './measure/measure.ts'
import { compareProfiles, type Profiled, type ProfileReport, readProfile } from './measure/profile.ts'
import { type Result, renderReport } from './measure/report.ts'
import { startNginx } from './subjects/nginx.ts'
import {
  type LoadGenerator,
  type Subject,
  startLoad,
  startScript,
  stop,
  stopAll,
} from './subjects/processes.ts'
import { startTollgate, type Tollgate } from './subjects/tollgate.ts'
import { compareTcp, type TcpResult } from './tcp/tcp.ts'

const { values: options } = parseArgs({
  options: {
    /** Shorter rounds, fewer streams: for a look, or to see that the benchmark runs. */
    quick: { type: 'boolean', default: false },
    /** Memory over a million requests as well. */
    long: { type: 'boolean', default: false },
    /** Where the CPU time of both goes, instead of how much it is. */
    profile: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    /**
     * One workload: completion, prompt, stream, open-streams, mcp-json, mcp-sse, mcp-sessions, http-get,
     * http-post, guard, guard-stream, reload, tcp, loop; or a prefix: mcp, http, guard.
     */
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
const mcpTokens = createIssuer()

/** Workloads that are served by the same processes. */
type Stage = {
  workloads: Workload[]
  startRelay(nodeFlags?: readonly string[]): Promise<Subject>
  startGateway(nodeFlags?: readonly string[]): Promise<Tollgate>
  /** Measured in the same rounds, for information. */
  startOthers?(): Promise<(Subject & { end(): Promise<void> })[]>
}

async function main(): Promise<void> {
  if (options.only === 'loop') {
    const loop = await measureLoop({ quick: options.quick, entry: options.entry })
    process.stdout.write(options.json ? `${JSON.stringify(loop, undefined, 2)}\n` : renderLoop(loop))
    return
  }
  const load = startLoad()
  const stages = [await llmStage(), await mcpStage(), await httpStage(), await guardStage()] as const
  const [llm, mcp] = stages
  const result: Result = { workloads: [] }
  if (options.profile) {
    result.profile = await profile(load, stages.find((stage) => stage.workloads.length > 0) ?? neverEmpty())
  } else {
    for (const stage of stages) result.workloads.push(...(await compare(load, stage)))
    if (isChosen('open-streams')) result.openStreams = await openStreams(load, llm)
    if (isChosen('mcp-sessions')) result.mcpSessions = await mcpSessions(mcp)
    if (isChosen('reload')) result.reload = await reload(load)
    if (isChosen('tcp')) result.tcp = await tcp()
    if (options.long) result.memory = await memory(load, llm)
  }
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : renderReport(result))
}

function isChosen(name: string): boolean {
  const { only } = options
  return only === undefined || only === name || name.startsWith(`${only}-`)
}

async function llmStage(): Promise<Stage> {
  const { port: upstreamPort } = await startScript('llm/upstream.ts', (port) => [String(port)])
  return {
    workloads: workloads.filter(({ name }) => isChosen(name)),
    startRelay: (nodeFlags) =>
      startScript('llm/relay.ts', (port) => [String(port), String(upstreamPort)], nodeFlags),
    startGateway: (nodeFlags = options['node-flag']) =>
      startTollgate({ upstreamPort, nodeFlags, entry: options.entry }),
  }
}

async function mcpStage(): Promise<Stage> {
  const { port: upstreamPort } = await startScript('mcp/upstream.ts', (port) => [String(port)])
  const mcp = mcpConfig(upstreamPort, mcpTokens)
  return {
    workloads: mcpWorkloads(mcpTokens).filter(({ name }) => isChosen(name)),
    startRelay: (nodeFlags) =>
      startScript('mcp/relay.ts', (port) => [String(port), String(upstreamPort)], nodeFlags),
    startGateway: (nodeFlags = options['node-flag']) =>
      startTollgate({ upstreamPort, mcp, nodeFlags, entry: options.entry }),
  }
}

/** Guards of requests and answers that ask a webhook which answers at once. */
async function guardStage(): Promise<Stage> {
  const { port: upstreamPort } = await startScript('llm/upstream.ts', (port) => [String(port)])
  const { port: webhookPort } = await startScript('llm/guard-webhook.ts', (port) => [String(port)])
  const start = async (name: string, guardrails: object | undefined, nodeFlags: readonly string[]) => {
    const tollgate = await startTollgate({
      upstreamPort,
      nodeFlags,
      entry: options.entry,
      ...(guardrails && { guardrails }),
    })
    return { ...tollgate, name }
  }
  const flags = options['node-flag']
  const relayWithCalls = async () => {
    const relay = await startScript('llm/relay.ts', (port) => [port, upstreamPort, webhookPort].map(String))
    return { ...relay, name: 'relay+calls', end: () => stop(relay.child) }
  }
  return {
    workloads: guardWorkloads.filter(({ name }) => isChosen(name)),
    startRelay: (nodeFlags) =>
      startScript('llm/relay.ts', (port) => [String(port), String(upstreamPort)], nodeFlags),
    startGateway: (nodeFlags = flags) => start('tollgate', guardrailsAt(webhookPort, 'buffered'), nodeFlags),
    startOthers: async () => [
      await relayWithCalls(),
      await start('no guards', undefined, flags),
      await start('windowed', guardrailsAt(webhookPort, 'windowed'), flags),
    ],
  }
}

const fewRoutes = 10
/** As many as must not cost a request more than few. */
const manyRoutes = 10_000

async function httpStage(): Promise<Stage> {
  const { port: upstreamPort } = await startScript('http/upstream.ts', (port) => [String(port)])
  const counts = new Map<Subject, number>()
  const routesOf = (subject: Subject) => counts.get(subject) ?? fewRoutes
  const start = async (count: number, nodeFlags: readonly string[]) => {
    const tollgate = await startTollgate({
      upstreamPort,
      nodeFlags,
      entry: options.entry,
      sections: (port) => httpSections(port, upstreamPort, { count }),
    })
    counts.set(tollgate, count)
    return tollgate
  }
  return {
    workloads: httpWorkloads((connection, subject) => httpPath(connection, routesOf(subject))).filter(
      ({ name }) => isChosen(name),
    ),
    startRelay: (nodeFlags) =>
      startScript('http/relay.ts', (port) => [String(port), String(upstreamPort)], nodeFlags),
    startGateway: (nodeFlags = options['node-flag']) => start(fewRoutes, nodeFlags),
    async startOthers() {
      const many = await start(manyRoutes, options['node-flag'])
      many.name = `${manyRoutes} routes`
      const nginx = await startNginx(upstreamPort)
      return nginx === undefined ? [many] : [many, nginx]
    },
  }
}

async function compare(load: LoadGenerator, stage: Stage): Promise<Result['workloads']> {
  if (stage.workloads.length === 0) return []
  const relay = await stage.startRelay()
  const tollgate = await stage.startGateway()
  const others = (await stage.startOthers?.()) ?? []
  const results: Result['workloads'] = []
  for (const workload of stage.workloads) {
    progress(`${workload.title}: ${pace.rounds} rounds of ${pace.secondsPerRound} s each`)
    const subjects = [relay, tollgate, ...others]
    const [relayFigures, tollgateFigures, ...more] = await measure(load, subjects, { workload, pace })
    tollgate.truncateLog()
    if (!relayFigures || !tollgateFigures) continue
    const { name, title, target } = workload
    results.push({ name, title, target, relay: relayFigures, tollgate: tollgateFigures, others: more })
  }
  await stop(relay.child)
  for (const subject of [tollgate, ...others]) await subject.end()
  return results
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
    const tollgate = await startGateway([...options['node-flag'], ...probeFlags])
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
  return compareReloads(
    load,
    { routes: manyRoutes, perSecond: 500, seconds },
    { nodeFlags: options['node-flag'], entry: options.entry },
  )
}

function tcp(): Promise<TcpResult> {
  const mebibytes = options.quick ? 64 : 1024
  progress(`TCP: ${pace.rounds} rounds of ${mebibytes} MiB each`)
  return compareTcp(
    { rounds: pace.rounds, mebibytes, connections: options.quick ? 100 : 1000 },
    { nodeFlags: options['node-flag'], entry: options.entry },
  )
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
  const tollgate = await stage.startGateway([...options['node-flag'], ...profiler])
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

function progress(text: string): void {
  process.stderr.write(`${text}\n`)
}

try {
  await main()
} finally {
  await stopAll()
}
