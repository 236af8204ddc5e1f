import type { Reply } from '../../../net/http-client/send.ts'
import { refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { geminiModelsIn, isGoogleClient } from '../request/gemini-path.ts'
import type { Models } from './models.ts'
import type { StartTime } from './start-time.ts'

export type ModelList = {
  models: Pick<Models, 'publicNames' | 'isPublic'>
  started: StartTime
}

/**
 * Response to `/v1/models` and `/v1/models/{id}`, also of version `v1beta`: the models permitted for the key,
 * in the shape of the client's API.
 */
export function modelListReply(
  exchange: Exchange,
  id: string | undefined,
  { models, started }: ModelList,
): Reply {
  const access = exchange.auth.models
  const created = started.at
  const describe = describerFor(exchange)
  if (id !== undefined) {
    // A name that matches a pattern exists, although the list contains only the pattern.
    if (models.isPublic(id) && access?.allows(id) !== false) return json(describe(id, created))
    return refuse(exchange, {
      status: 404,
      code: 'model_not_found',
      message: 'Model not found',
      param: 'model',
    })
  }
  const visible = visibleNames(exchange, models)
  const data = visible.map((name) => describe(name, created))
  if (describe === openAiModel) return json({ data, object: 'list' })
  if (describe === googleModel) return json({ models: data })
  return json({ data, has_more: false, first_id: visible[0] ?? null, last_id: visible.at(-1) ?? null })
}

/**
 * Names permitted for the key. If the key permits only a part of a pattern, the list contains that part as
 * written in the key's `allowedModels`: a key for `gpt-4o-mini` finds it although the model is configured as
 * `gpt-*`.
 */
function visibleNames(
  { auth: { models: access } }: Exchange,
  { publicNames, isPublic }: ModelList['models'],
): readonly string[] {
  if (!access) return publicNames
  return [...new Set([...publicNames.filter(access.allows), ...access.patterns.filter(isPublic)])]
}

type Describe = (id: string, created: number) => object

function describerFor({ facts: { request }, forwarding }: Exchange): Describe {
  const path = forwarding?.path ?? request.path
  if (geminiModelsIn(path) ?? isGoogleClient(request.headers)) return googleModel
  return request.headers['anthropic-version'] === undefined ? openAiModel : anthropicModel
}

/** https://ai.google.dev/api/models#Model. The name of a model determines its methods. */
function googleModel(id: string): object {
  const supportedGenerationMethods = /embed/i.test(id)
    ? ['embedContent', 'batchEmbedContents']
    : ['generateContent', 'countTokens']
  return { name: `models/${id}`, displayName: id, supportedGenerationMethods }
}

/** https://platform.openai.com/docs/api-reference/models/object */
function openAiModel(id: string, created: number): object {
  return { id, object: 'model', created, owned_by: 'openai' }
}

/** https://docs.anthropic.com/en/api/models-list */
function anthropicModel(id: string, created: number): object {
  return { type: 'model', id, display_name: id, created_at: new Date(created * 1000).toISOString() }
}

function json(value: object): Reply {
  return {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(value)),
  }
}
