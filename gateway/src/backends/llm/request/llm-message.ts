import { readJson } from '../../../lib/json/read.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { LlmApi, LlmMessage } from '../../../pipeline/llm-message.ts'
import type { Call } from './call.ts'
import type { Endpoint } from './endpoints.ts'

/** The client API of an endpoint whose requests and answers are texts, else undefined. */
export function apiOf(endpoint: Endpoint | 'passthrough'): LlmApi | undefined {
  switch (endpoint) {
    case 'chat':
    case 'messages':
    case 'responses':
    case 'completions':
      return endpoint
    default:
      return undefined
  }
}

/** A call as policies see it; undefined for one whose content is not text. */
export function llmMessageOf(call: Call, workQueue: WorkQueue): LlmMessage | undefined {
  const api = apiOf(call.endpoint)
  if (api === undefined) return undefined
  return {
    api,
    request: () => call.json,
    async replaceRequest(bytes) {
      const json = await readJson(bytes, workQueue)
      if (json.kind !== 'object') throw new Error('a request was replaced by what is no JSON object')
      call.json = json
      call.bytes = bytes
    },
    guardrailsOfModels() {
      const asked = call.served === undefined ? call.candidates : [call.served]
      const found = new Set<object>()
      for (const { target } of asked) if (target.guardrails !== undefined) found.add(target.guardrails)
      return [...found]
    },
    readsAnswer: false,
    answer: undefined,
  }
}
