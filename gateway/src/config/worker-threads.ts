import { anyOfShapes, enumeration, integer } from '../schema/dsl.ts'

/** Most data planes of a process. */
export const maxWorkerThreads = 256

const doc =
  'Threads that serve traffic, each on the same ports. `auto`: as many as the cores that the process may use, CPU quota of the container included. `WORKER_THREADS` of the environment applies without this setting. With 1, the main thread serves traffic.'

/** `config.workerThreads`. */
export const workerThreadsSchema = anyOfShapes(
  [
    enumeration(['auto'], { doc: 'As many threads as cores.' }),
    integer({ doc: 'Number of threads.' }, { min: 1, max: maxWorkerThreads }),
  ],
  { doc, default: 'auto', example: 4 },
)
