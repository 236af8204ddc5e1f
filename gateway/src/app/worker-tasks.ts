import type { createWorkerTasks } from '../config/load/worker-task.ts'
import { parseManifest } from '../kubernetes/objects/manifests/parse-manifest.ts'
import { editFile } from '../resources/file/file-edit.ts'
import { loadConfig } from './config-tasks.ts'

/** Tasks of the config worker (config-worker.ts): for a large file they would delay traffic. */
export const configTasks = { load: loadConfig, edit: editFile, manifest: parseManifest }

/** Runs a task on the config worker. */
export type RunConfigTask = ReturnType<typeof createWorkerTasks<typeof configTasks>>
