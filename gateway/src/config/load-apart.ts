import { type MessagePort, Worker } from 'node:worker_threads'
import { releaseMemory } from '../lib/release-memory.ts'
import type { Environment } from './environment.ts'

export type LoadRequest = { text: string; file: string; env: Environment }

/** What a text turned out to be; issues are lines for a person. */
export type LoadOutcome<T> = { kind: 'config'; config: T } | { kind: 'issues'; issues: string[] }

/**
 * Loads a configuration on a thread of its own, so that traffic does not wait for it: reading 100,000 keys from YAML
 * takes seconds. The garbage, some 12 kB a key, goes away with the thread. `entry` is a module that calls `answerLoad`.
 */
export function loadApart<T>(entry: URL, request: LoadRequest): Promise<LoadOutcome<T>> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(entry, { workerData: request, execArgv: [], env: {} })
    worker.once('message', resolve)
    worker.once('error', (cause) => reject(new Error('the configuration cannot be loaded', { cause })))
    // After a message the promise is settled, and this changes nothing.
    worker.once('exit', (code) => reject(new Error(`loading the configuration ended with code ${code}`)))
  })
}

/** The thread's side of `loadApart`. */
export function answerLoad<T>(
  port: MessagePort,
  request: LoadRequest,
  load: (request: LoadRequest) => LoadOutcome<T>,
) {
  port.postMessage(load(request))
  releaseMemory()
}
