import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { createDataPlane } from '../data-plane/data-plane.ts'
import { openServer } from '../data-plane/open-server.ts'
import { createLedgerSender } from '../ledger/sender.ts'
import { createLocalMemory } from '../lib/planes/memory.ts'
import { createSinglePlane } from '../lib/planes/peers.ts'
import { createThreadPool } from '../lib/scheduling/thread-pool.ts'
import { createProcessGuardian } from '../process/guardian.ts'
import type { DataPlanes, DataPlanesOptions } from './data-planes.ts'
import { startGroup } from './group.ts'
import { poolLimitsOf } from './pool-limits.ts'
import { countWorkers, thisMachine } from './worker-count.ts'

/**
 * Starts the data planes: one on the main thread, or several on threads of their own. Throws `ConfigRejected`
 * for a number that is not possible.
 */
export async function openDataPlanes(options: DataPlanesOptions): Promise<DataPlanes> {
  const machine = thisMachine(process.platform, availableParallelism())
  const count = countWorkers(options.settings.workerThreads, options.env, machine)
  options.metrics.workers.started(count)
  return count === 1 ? startSingle(options) : startGroup(options, count)
}

/** A further thread would cost memory and a copy of each change, and gain no core. */
function startSingle(options: DataPlanesOptions): DataPlanes {
  const { acceptEntries, metrics } = options
  const ledger = acceptEntries && createLedgerSender({ send: acceptEntries, meter: metrics.ledger })
  const dataPlane = createDataPlane({
    ...options,
    ledger,
    threads: createThreadPool({
      start: () => new Worker(options.threadUrls.pool, { execArgv: [], env: {} }),
      ...poolLimitsOf(1),
    }),
    memory: createLocalMemory(),
    peers: createSinglePlane(),
    guardian: createProcessGuardian(),
    openServer,
  })
  return {
    ...dataPlane,
    metrics: async () => [],
    async close() {
      await dataPlane.close()
      ledger?.close()
      await ledger?.flush()
    },
  }
}
