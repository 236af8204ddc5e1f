import { setTimeout as delay } from 'node:timers/promises'
import { heldModel, requestBody, type Workload } from '../llm/workloads.ts'
import type { LoadOrder } from '../load/load.ts'
import type { LoadReport } from '../load/report.ts'
import {
  cpuMicroseconds,
  type LoadGenerator,
  residentMebibytes,
  type Subject,
} from '../subjects/processes.ts'
import { benchKey } from '../subjects/tollgate.ts'
import { requestText } from './request.ts'

/** Medians over all rounds of one workload at one subject. */
export type Figures = {
  subject: string
  requests: number
  requestsPerSecond: number
  p50Ms: number
  p99Ms: number
  cpuMicrosPerRequest: number
  residentMebibytes: number
  /** Share of one CPU that the load generator used: near 1, it limits the requests/s. */
  loadBusy: number
}

export type Pace = { rounds: number; secondsPerRound: number; warmUpSeconds: number }

/**
 * Measures the subjects in rotation, round by round: load of the machine affects all of them alike, and the
 * median of the rounds removes outliers.
 */
export async function measure(
  load: LoadGenerator,
  subjects: readonly Subject[],
  job: { workload: Workload; pace: Pace },
) {
  const { workload, pace } = job
  const requests = new Map<Subject, string[] | undefined>()
  for (const subject of subjects) requests.set(subject, await workload.requestsTo?.(subject))
  const drive = (subject: Subject, seconds: number) => {
    const limit = { durationMs: seconds * 1000, requests: requests.get(subject) }
    return checked(load, runOrder(subject, workload, limit), subject.name)
  }
  for (const subject of pace.warmUpSeconds > 0 ? subjects : []) await drive(subject, pace.warmUpSeconds)
  const rounds = new Map<Subject, Figures[]>()
  for (let round = 0; round < pace.rounds; round++) {
    const order = round % 2 === 0 ? subjects : subjects.toReversed()
    for (const subject of order) {
      const figures = await oneRound(load, subject, () => drive(subject, pace.secondsPerRound))
      rounds.set(subject, [...(rounds.get(subject) ?? []), figures])
    }
  }
  return subjects.map((subject) => medians(subject.name, rounds.get(subject) ?? []))
}

async function oneRound(
  load: LoadGenerator,
  subject: Subject,
  drive: () => Promise<LoadReport>,
): Promise<Figures> {
  const before = cpuMicroseconds(subject.child)
  const loadBefore = cpuMicroseconds(load.child)
  const report = await drive()
  const spent = cpuMicroseconds(subject.child) - before
  return {
    subject: subject.name,
    requests: report.requests,
    requestsPerSecond: report.requests / report.seconds,
    p50Ms: report.p50Ms,
    p99Ms: report.p99Ms,
    cpuMicrosPerRequest: spent / report.requests,
    residentMebibytes: residentMebibytes(subject.child),
    loadBusy: (cpuMicroseconds(load.child) - loadBefore) / 1e6 / report.seconds,
  }
}

function medians(subject: string, rounds: readonly Figures[]): Figures {
  const middle = (read: (figures: Figures) => number) => median(rounds.map(read))
  return {
    subject,
    requests: rounds.reduce((sum, round) => sum + round.requests, 0),
    requestsPerSecond: middle((round) => round.requestsPerSecond),
    p50Ms: middle((round) => round.p50Ms),
    p99Ms: middle((round) => round.p99Ms),
    cpuMicrosPerRequest: middle((round) => round.cpuMicrosPerRequest),
    residentMebibytes: middle((round) => round.residentMebibytes),
    loadBusy: middle((round) => round.loadBusy),
  }
}

/** Memory of one open, idle stream in KiB: 1,000 concurrent streams of a process after a warm-up. */
export async function streamKibibytes(
  load: LoadGenerator,
  subject: Subject,
  streams: number,
): Promise<number> {
  const request = httpRequest(subject, requestBody(heldModel, true, 1024))
  const open = (connections: number) =>
    checked(load, { kind: 'open', port: subject.port, request, connections })
  await open(Math.ceil(streams / 10))
  await load.do({ kind: 'close' })
  await delay(1000)
  const before = residentMebibytes(subject.child)
  await open(streams)
  // Every open stream receives a chunk each second; buffers reach their final size after two.
  await delay(2500)
  const after = residentMebibytes(subject.child)
  await load.do({ kind: 'close' })
  return ((after - before) * 1024) / streams
}

/** Resident memory after each of several numbers of requests, in MiB. */
export async function residentAfter(
  load: LoadGenerator,
  subject: Subject,
  job: { workload: Workload; marks: readonly number[]; afterMark?: () => void },
): Promise<number[]> {
  const sizes: number[] = []
  let served = 0
  for (const mark of job.marks) {
    const report = await checked(load, runOrder(subject, job.workload, { maxRequests: mark - served }))
    served += report.requests
    sizes.push(residentMebibytes(subject.child))
    job.afterMark?.()
  }
  return sizes
}

/** The order to drive a subject with a workload until time or requests run out. */
export function runOrder(
  subject: Subject,
  workload: Workload,
  limit: { durationMs?: number; maxRequests?: number; requests?: string[] | undefined },
): LoadOrder {
  return {
    kind: 'run',
    port: subject.port,
    requests: limit.requests ?? [httpRequest(subject, workload.body)],
    connections: workload.connections,
    ending: workload.ending,
    durationMs: limit.durationMs ?? 86_400_000,
    maxRequests: limit.maxRequests ?? Number.MAX_SAFE_INTEGER,
  }
}

/** Fails the benchmark after the first failed request: figures over failed requests are meaningless. */
export async function checked(load: LoadGenerator, order: LoadOrder, name = 'tollgate'): Promise<LoadReport> {
  const report = await load.do(order)
  const { failures, requests, firstFailure } = report
  if (failures > 0 || requests === 0) {
    throw new Error(
      `${name}: ${failures} requests failed, ${requests} succeeded; first failure: ${firstFailure}`,
    )
  }
  return report
}

/** The bytes of a chat completion request with the key of the benchmark. */
export function httpRequest(subject: Subject, body: Buffer): string {
  return requestText(subject, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'bench',
      authorization: `Bearer ${benchKey}`,
    },
    body: body.toString('latin1'),
  })
}

/** The middle value; of an even number the mean of both in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? 0
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0
  return (upper + lower) / 2
}
