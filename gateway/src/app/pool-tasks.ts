import { createDocumentTask, documentTask } from '../backends/mcp/targets/openapi/document-task.ts'
import { parseYaml } from '../config/yaml/yaml.ts'
import type { PoolTasks } from '../lib/scheduling/thread-pool.ts'
import { passwordTask, verifyPassword } from '../policies/basic-auth/password-task.ts'
import { createSearchTask, searchTask } from '../policies/guardrails/kinds/regex/task.ts'
import { runWriteBack, writeBackTask } from '../policies/guardrails/write-back.ts'

/** Tasks of single requests that would block the event loop. Called once in each thread of the pool. */
export function createPoolTasks(): PoolTasks {
  return {
    [passwordTask]: verifyPassword,
    [searchTask]: createSearchTask(),
    [writeBackTask]: runWriteBack,
    [documentTask]: createDocumentTask(parseYaml),
  }
}
