import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createProcessGuardian } from '../../src/process/guardian.ts'
import { freePort } from '../../test/support/free-port.ts'
import type { LoadOrder } from '../load/load.ts'
import type { LoadReport } from '../load/report.ts'
import type { RequestParts } from '../measure/request.ts'
import { onCpus } from './placement.ts'
import { treeCpuMicroseconds, treeResidentMebibytes } from './process-tree.ts'

export type Subject = {
  name: string
  port: number
  child: ChildProcess
  /** The form of requests that the subject expects, where it differs from Tollgate's. */
  adapt?: (request: RequestParts) => RequestParts
}

export type LoadGenerator = { do(order: LoadOrder): Promise<LoadReport>; child: ChildProcess }

/** Flags of the runtime, and the CPUs of the process. */
export type ProcessOptions = { nodeFlags?: readonly string[] | undefined; cpus?: string | undefined }

const running = new Set<ChildProcess>()
const guardian = createProcessGuardian()

/**
 * Starts a command in its own process group. The group ends with the benchmark, also if the benchmark is
 * killed.
 */
export function launch(
  command: readonly string[],
  { cpus, ...options }: Omit<SpawnOptions, 'detached'> & { cpus?: string | undefined },
): ChildProcess {
  const [program = '', ...args] = onCpus(cpus, command)
  const child = spawn(program, args, { ...options, detached: true })
  const { pid } = child
  if (pid !== undefined) {
    guardian.watch(pid)
    child.once('exit', () => {
      signalGroup(pid, 'SIGKILL')
      guardian.unwatch(pid)
    })
  }
  return track(child)
}

/** Starts a script of the benchmark, by its path in `gateway/bench`; resolves once it listens. */
export async function startScript(
  script: string,
  args: (port: number) => string[],
  { nodeFlags = [], cpus }: ProcessOptions = {},
): Promise<Subject> {
  const port = await freePort()
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url))
  const command = [process.execPath, ...nodeFlags, path, ...args(port)]
  const child = launch(command, { cpus, stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`${script} ended with ${code}`)))
  })
  return { name: basename(script, '.ts'), port, child }
}

export function startLoad(cpus?: string): LoadGenerator {
  const path = fileURLToPath(new URL('../load/load.ts', import.meta.url))
  const child = launch([process.execPath, path], { cpus, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  return {
    child,
    do: (order) =>
      new Promise((resolve, reject) => {
        const ended = (code: number | null) => reject(new Error(`the load generator ended with ${code}`))
        child.once('exit', ended)
        child.once('message', (report: LoadReport) => {
          child.removeListener('exit', ended)
          resolve(report)
        })
        child.send(order)
      }),
  }
}

/** Registers a process, so that it ends with the benchmark. */
export function track(child: ChildProcess): ChildProcess {
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Ends a process and the group that it leads: SIGTERM, then SIGKILL. Resolves at the end of the process. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  if (!signalGroup(child.pid, 'SIGTERM')) child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await exited
  clearTimeout(patience)
}

/** False unless the process leads a group that has members. */
function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-group, signal)
    return true
  } catch {
    return false
  }
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(stop))
}

/** CPU time that a process and its descendants have used, all threads, in microseconds. */
export function cpuMicroseconds({ pid }: ChildProcess): number {
  return pid === undefined ? 0 : treeCpuMicroseconds(pid)
}

/** Resident memory of a process and its descendants, in MiB. */
export function residentMebibytes({ pid }: ChildProcess): number {
  return pid === undefined ? 0 : treeResidentMebibytes(pid)
}
