import { type ChildProcess, fork, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/support/free-port.ts'
import type { LoadOrder, LoadReport } from '../load/load.ts'

export type Subject = { name: string; port: number; child: ChildProcess }

export type LoadGenerator = { do(order: LoadOrder): Promise<LoadReport>; child: ChildProcess }

const children = new Set<ChildProcess>()

/** Starts a script of the benchmark, by its path in `gateway/bench`; resolves once it listens. */
export async function startScript(
  script: string,
  args: (port: number) => string[],
  nodeFlags: readonly string[] = [],
): Promise<Subject> {
  const port = await freePort()
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url))
  const command = [...nodeFlags, path, ...args(port)]
  const child = track(spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] }))
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once('data', () => resolve())
    child.once('exit', (code) => reject(new Error(`${script} ended with ${code}`)))
  })
  return { name: basename(script, '.ts'), port, child }
}

export function startLoad(): LoadGenerator {
  const child = track(fork(fileURLToPath(new URL('../load/load.ts', import.meta.url))))
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

/** Remembers a process, so that nothing outlives the benchmark. */
export function track(child: ChildProcess): ChildProcess {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await exited
  clearTimeout(patience)
}

export async function stopAll(): Promise<void> {
  await Promise.all([...children].map(stop))
}

const ticksPerSecond = 100

/** CPU time a process has used, all threads, in microseconds. */
export function cpuMicroseconds(child: ChildProcess): number {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1')
  // The process name may contain spaces, so fields count from its closing parenthesis; proc(5): utime is 14,
  // stime 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1_000_000) / ticksPerSecond
}

/** Resident memory of a process, in MiB. */
export function residentMebibytes(child: ChildProcess): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'latin1'))
  return Number(line?.[1] ?? 0) / 1024
}
