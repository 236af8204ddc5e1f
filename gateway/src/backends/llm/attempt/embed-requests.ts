import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'

/**
 * JSON of the `requests` of `batchEmbedContents` with the model of the path, which Google requires in each of
 * them; undefined if they have it.
 */
export function requestsWithModel({ requests }: JsonObject, model: string): string | undefined {
  if (!Array.isArray(requests)) return undefined
  const name = model.startsWith('tunedModels/') || model.startsWith('models/') ? model : `models/${model}`
  if (requests.every((request) => isJsonObject(request) && request['model'] === name)) return undefined
  return JSON.stringify(
    requests.map((request) => (isJsonObject(request) ? { ...request, model: name } : request)),
  )
}
