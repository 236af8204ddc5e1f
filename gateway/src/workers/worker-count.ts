import { ConfigRejected } from '../config/config-rejected.ts'
import type { Environment } from '../config/load/environment.ts'
import { maxWorkerThreads } from '../config/worker-threads.ts'

export type WorkerThreads = number | 'auto'

export type Machine = {
  /** Cores that the process may use: affinity and the CPU quota of its control group included. */
  cores: number
  /** Whether the system divides connections among sockets of one port (`SO_REUSEPORT`). */
  dividesConnections: boolean
}

/**
 * Number of data planes. `configured` is `config.workerThreads`; without it `WORKER_THREADS` of the
 * environment applies, and `auto` by default. Throws `ConfigRejected`.
 */
export function countWorkers(
  configured: WorkerThreads | undefined,
  env: Environment,
  { cores, dividesConnections }: Machine,
): number {
  const wanted = configured ?? readVariable(env['WORKER_THREADS'])
  if (wanted === 'auto') return dividesConnections ? Math.min(Math.max(1, cores), maxWorkerThreads) : 1
  if (wanted > 1 && !dividesConnections) {
    throw new ConfigRejected([
      'config.workerThreads must be 1 or auto on this system: it does not divide connections among threads',
    ])
  }
  return wanted
}

function readVariable(text: string | undefined): WorkerThreads {
  if (text === undefined || text === '' || text === 'auto') return 'auto'
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= maxWorkerThreads) return count
  throw new ConfigRejected([
    `WORKER_THREADS must be auto or a whole number from 1 to ${maxWorkerThreads}, got "${text}"`,
  ])
}

/** Systems on which `SO_REUSEPORT` divides connections, as in the documentation of `net.Server.listen`. */
const dividing: ReadonlySet<string> = new Set(['linux', 'freebsd', 'aix', 'sunos'])

export function thisMachine(platform: string, cores: number): Machine {
  return { cores, dividesConnections: dividing.has(platform) }
}
