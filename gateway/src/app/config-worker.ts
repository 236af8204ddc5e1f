import { parentPort } from 'node:worker_threads'
import { serveWorkerTasks } from '../config/load/worker-task.ts'
import { releaseMemory } from '../lib/scheduling/release-memory.ts'
import { configTasks } from './worker-tasks.ts'

// Entry of the config worker: a bundle without the data plane, which loads faster than that of the gateway.

if (parentPort) serveWorkerTasks(parentPort, configTasks, releaseMemory)
