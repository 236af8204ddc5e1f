import { setTimeout as delay } from 'node:timers/promises'
import { httpPath, httpSections, httpWorkloads } from '../http/workloads.ts'
import { workloads } from '../llm/workloads.ts'
import type { LoadReport } from '../load/report.ts'
import { checked, type Figures, httpRequest, measure } from '../measure/measure.ts'
import { chosenWorkloads, isChosen, paceOf, progress } from '../measure/stage.ts'
import type { BenchOptions } from '../options.ts'
import { type LoadGenerator, residentMebibytes, startLoad, startScript, stop } from '../subjects/processes.ts'
import { startTollgate, type Tollgate } from '../subjects/tollgate.ts'
import { busiestThread, spreadOf, threadTimes } from './threads.ts'

type Name =
  | 'workers-throughput'
  | 'workers-large-bodies'
  | 'workers-spread'
  | 'workers-memory'
  | 'workers-keys'

/** One figure, for a number of workers. */
export type WorkerFigure = { name: string; workers: number; value: number; unit: string; target?: string }

export type WorkersResult = {
  workers: number
  cases: { name: Name; title: string; figures: WorkerFigure[] }[]
}

type Context = {
  options: BenchOptions
  load: LoadGenerator
  /** Numbers of workers to compare: 1, and the number of the run. */
  counts: readonly number[]
  ports: { llm: number; http: number }
}

type WorkerCase = { name: Name; title: string; run(context: Context): Promise<WorkerFigure[]> }

const mebibytes32 = 32 * 1024 * 1024
/** The limit of a body counts all its bytes. */
const largeBodyBytes = mebibytes32 - 64 * 1024
const manyKeys = 100_000

const workerCases: readonly WorkerCase[] = [
  { name: 'workers-throughput', title: 'requests/s and CPU per request', run: throughput },
  {
    name: 'workers-large-bodies',
    title: 'p99 of small requests, alone and while one client sends 32 MiB bodies',
    run: largeBodies,
  },
  {
    name: 'workers-spread',
    title: 'keep-alive connections of the busiest worker / mean',
    run: spread,
  },
  { name: 'workers-memory', title: 'memory of a further worker', run: memory },
  { name: 'workers-keys', title: `memory of a key among ${manyKeys}`, run: keys },
]

/** Compares one worker (`config.workerThreads`) with several. */
export async function compareWorkers(
  load: LoadGenerator,
  options: BenchOptions,
  workers: number,
): Promise<WorkersResult> {
  const { placement } = options
  const upstream = async (script: string) =>
    (await startScript(script, (port) => [String(port)], { cpus: placement.upstream })).port
  const context: Context = {
    options,
    load,
    counts: [...new Set([1, workers])],
    ports: { llm: await upstream('llm/upstream.ts'), http: await upstream('http/upstream.ts') },
  }
  const cases: WorkersResult['cases'] = []
  for (const { name, title, run } of workerCases.filter((each) => isChosen(options, each.name))) {
    progress(`${title}, with ${context.counts.join(' and ')} workers`)
    cases.push({ name, title, figures: await run(context) })
  }
  return { workers, cases }
}

const throughputConnections = 64

async function throughput({ options, load, counts, ports }: Context): Promise<WorkerFigure[]> {
  const pace = paceOf(options)
  const settings = { ...options, only: undefined, connections: options.connections ?? throughputConnections }
  const [completion] = chosenWorkloads(settings, workloads)
  const httpGet = chosenWorkloads(
    settings,
    httpWorkloads((connection) => httpPath(connection, 10)),
  ).find(({ name }) => name === 'http-get')
  const figures: WorkerFigure[] = []
  for (const workload of [completion, httpGet]) {
    if (!workload) continue
    const isHttp = workload.name === 'http-get'
    const subjects = await startEach(counts, options, isHttp ? { http: ports.http } : { llm: ports.llm })
    const measured = await measure(load, subjects, { workload, pace })
    for (const subject of subjects) await subject.end()
    figures.push(...throughputFigures(workload.title, counts, measured))
  }
  return figures
}

function throughputFigures(title: string, counts: readonly number[], measured: Figures[]): WorkerFigure[] {
  const [one] = measured
  return measured.flatMap((figures, index) => {
    const workers = counts[index] ?? 0
    const figure = (name: string, value: number, unit: string, target?: string): WorkerFigure => ({
      name: `${title}, ${name}`,
      workers,
      value,
      unit,
      ...(target !== undefined && { target }),
    })
    const own = [
      figure('requests/s', figures.requestsPerSecond, '/s'),
      figure('CPU per request', figures.cpuMicrosPerRequest, 'us'),
      figure('p99', figures.p99Ms, 'ms'),
      // At 100 the load generator limits the requests/s.
      figure('load generator busy', figures.loadBusy * 100, '%'),
    ]
    if (!one || index === 0) return own
    return [
      ...own,
      figure('requests/s ratio', figures.requestsPerSecond / one.requestsPerSecond, '', 'at least 1.7'),
      figure('CPU ratio', figures.cpuMicrosPerRequest / one.cpuMicrosPerRequest, '', 'at most 1.1'),
    ]
  })
}

const smallConnections = 64
const smallPerSecond = 400

/** Small requests on connections of every worker; the large bodies come through one connection. */
async function largeBodies({ options, load, counts, ports }: Context): Promise<WorkerFigure[]> {
  const durationMs = options.quick ? 2_000 : 15_000
  const sender = startLoad(options.placement.load)
  const figures: WorkerFigure[] = []
  for (const workers of counts) {
    const [subject] = await startEach([workers], options, { llm: ports.llm })
    if (!subject) continue
    const owners = await ownersOf(load, subject, smallConnections)
    const [senderOwner] = await ownersOf(sender, subject, 1)
    const indexes = owners.map((_, index) => index)
    const groups = [
      { name: 'the same worker', connections: indexes.filter((index) => owners[index] === senderOwner) },
      { name: 'other workers', connections: indexes.filter((index) => owners[index] !== senderOwner) },
    ].filter(({ connections }) => connections.length > 0)
    const drive = () =>
      checked(load, {
        kind: 'pace',
        groups: groups.map(({ connections }) => connections),
        ...smallRequest(subject),
        perSecond: smallPerSecond,
        durationMs,
      })
    await drive()
    const alone = await drive()
    const sending = checked(sender, {
      kind: 'flood',
      connection: 0,
      head: httpRequest(subject, Buffer.alloc(0)).trimEnd(),
      bodyBytes: largeBodyBytes,
      ending: '}',
      durationMs: durationMs + 2_000,
    })
    // The first body compiles code.
    await delay(2_000)
    const beside = await drive()
    const sent = await sending
    figures.push(...largeBodyFigures(workers, groups, { alone, beside, sent }))
    await release(load, sender, subject)
  }
  await stop(sender.child)
  return figures
}

function largeBodyFigures(
  workers: number,
  groups: readonly { name: string }[],
  { alone, beside, sent }: { alone: LoadReport; beside: LoadReport; sent: LoadReport },
): WorkerFigure[] {
  return [
    { name: 'large bodies', workers, value: sent.requests / sent.seconds, unit: '/s' },
    ...groups.flatMap(({ name }, index): WorkerFigure[] => {
      const [before, after] = [alone.groups?.[index]?.p99Ms ?? 0, beside.groups?.[index]?.p99Ms ?? 0]
      const ratio = { name: `p99 ratio, ${name}`, workers, value: after / before, unit: '' }
      return [
        { name: `p99 alone, ${name}`, workers, value: before, unit: 'ms' },
        { name: `p99 beside large bodies, ${name}`, workers, value: after, unit: 'ms' },
        name === 'other workers' ? { ...ratio, target: 'at most 1.5' } : ratio,
      ]
    }),
  ]
}

async function spread({ options, load, counts, ports }: Context): Promise<WorkerFigure[]> {
  const connections = options.quick ? 32 : 256
  const figures: WorkerFigure[] = []
  for (const workers of counts) {
    const [subject] = await startEach([workers], options, { llm: ports.llm })
    if (!subject) continue
    const owners = await ownersOf(load, subject, connections)
    const value = spreadOf(owners, workers)
    figures.push({ name: 'busiest / mean', workers, value, unit: '', target: 'at most 1.3' })
    await release(load, subject)
  }
  return figures
}

async function memory({ options, load, counts, ports }: Context): Promise<WorkerFigure[]> {
  const sizes: number[] = []
  for (const workers of counts) {
    const [subject] = await startEach([workers], options, { llm: ports.llm })
    if (!subject) continue
    sizes.push(await sizeAfterTraffic(load, subject, options))
    await subject.end()
  }
  const [one = 0] = sizes
  return counts.flatMap((workers, index): WorkerFigure[] => {
    const size = sizes[index] ?? 0
    const total = { name: 'resident', workers, value: size, unit: 'MiB' }
    if (index === 0) return [total]
    const value = (size - one) / (workers - 1)
    return [total, { name: 'each further worker', workers, value, unit: 'MiB', target: 'at most 60' }]
  })
}

const fewKeys = 10

async function keys({ options, load, counts, ports }: Context): Promise<WorkerFigure[]> {
  const figures: WorkerFigure[] = []
  for (const workers of counts) {
    const sizes: number[] = []
    for (const keyCount of [fewKeys, manyKeys]) {
      const [subject] = await startEach([workers], options, { llm: ports.llm, keyCount })
      if (!subject) continue
      sizes.push(await sizeAfterTraffic(load, subject, options))
      await subject.end()
    }
    const [few = 0, many = 0] = sizes
    const value = ((many - few) * 1024) / (manyKeys - fewKeys) / workers
    figures.push({ name: 'each key and worker', workers, value, unit: 'kB', target: 'at most 1' })
  }
  return figures
}

async function sizeAfterTraffic(
  load: LoadGenerator,
  subject: Tollgate,
  options: BenchOptions,
): Promise<number> {
  await ownersOf(load, subject, smallConnections)
  const groups = [Array.from({ length: smallConnections }, (_, index) => index)]
  const durationMs = options.quick ? 1_000 : 10_000
  await checked(load, { kind: 'pace', groups, ...smallRequest(subject), perSecond: 2_000, durationMs })
  await load.do({ kind: 'close' })
  await delay(1_000)
  return residentMebibytes(subject.child)
}

const requestsPerConnection = 20

/** Opens connections and finds the thread of each, as the one that spends CPU time on its requests. */
async function ownersOf(load: LoadGenerator, subject: Tollgate, connections: number): Promise<number[]> {
  const { pid = 0 } = subject.child
  const owners: number[] = []
  for (let connection = 0; connection < connections; connection += 1) {
    await checked(load, { kind: 'hold', port: subject.port, connections: 1 })
    const before = threadTimes(pid)
    const order = { ...smallRequest(subject), connection, count: requestsPerConnection }
    await checked(load, { kind: 'burst', ...order })
    const owner = busiestThread(before, threadTimes(pid))
    if (owner === undefined) throw new Error(`no thread served connection ${connection}`)
    owners.push(owner)
  }
  return owners
}

function smallRequest(subject: Tollgate): { request: string; ending: string } {
  const [completion] = workloads
  if (!completion) throw new Error('there is no workload')
  return { request: httpRequest(subject, completion.body), ending: completion.ending }
}

async function release(...ended: (LoadGenerator | Tollgate)[]): Promise<void> {
  for (const each of ended) await ('do' in each ? each.do({ kind: 'close' }) : each.end())
}

type Settings = { llm: number; keyCount?: number } | { http: number }

/** A gateway for each number of workers. */
async function startEach(
  counts: readonly number[],
  { nodeFlags, entry, placement }: BenchOptions,
  settings: Settings,
): Promise<Tollgate[]> {
  const subjects: Tollgate[] = []
  for (const workers of counts) {
    const common = { nodeFlags, entry, cpus: placement.gateway, workers }
    const subject =
      'http' in settings
        ? await startTollgate({
            ...common,
            upstreamPort: settings.http,
            sections: (port) => httpSections(port, settings.http, { count: 10 }),
          })
        : await startTollgate({
            ...common,
            upstreamPort: settings.llm,
            ...(settings.keyCount !== undefined && { keyCount: settings.keyCount }),
          })
    subjects.push({ ...subject, name: `${workers} workers` })
  }
  return subjects
}
