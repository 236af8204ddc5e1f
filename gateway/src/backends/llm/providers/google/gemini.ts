import type { Provider, ProviderCall, ProviderPaths } from '../provider.ts'
import {
  authorizeGoogle,
  contentPaths,
  embeddingPaths,
  googleQuery,
  modelSegment,
  namesOtherGoogleModel,
} from './google-request.ts'

const openAiPrefix = '/v1beta/openai'

/** https://ai.google.dev/api, and for embeddings https://ai.google.dev/gemini-api/docs/openai */
export const gemini: Provider = {
  name: 'gemini',
  address: 'https://generativelanguage.googleapis.com',
  paths: {},
  pathsFor,
  passthroughPrefix: openAiPrefix,
  namesOtherModel: namesOtherGoogleModel,
  editQuery: googleQuery,
  authorize: authorizeGoogle,
}

function pathsFor({ model, streaming }: ProviderCall): ProviderPaths {
  const path = modelPath(model)
  const embeddings = `${openAiPrefix}/embeddings`
  return path === undefined
    ? { embeddings }
    : { ...contentPaths(path, streaming), ...embeddingPaths(path), embeddings }
}

/** Path of a model, which may have its collection: `models/gemini-2.5-pro`, `tunedModels/mine`. */
function modelPath(model: string): string | undefined {
  const [, collection = 'models', name = ''] = /^(?:(models|tunedModels)\/)?(.*)$/s.exec(model) ?? []
  const segment = modelSegment(name)
  return segment === undefined ? undefined : `/v1beta/${collection}/${segment}`
}
