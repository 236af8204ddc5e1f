import type { Provider } from '../provider.ts'
import { authorizeGoogle, googleQuery, namesOtherGoogleModel } from './google-request.ts'

const openAiPrefix = '/v1beta/openai'

/** https://ai.google.dev/api, and https://ai.google.dev/gemini-api/docs/openai */
export const gemini: Provider = {
  name: 'gemini',
  address: 'https://generativelanguage.googleapis.com',
  paths: { chat: `${openAiPrefix}/chat/completions`, embeddings: `${openAiPrefix}/embeddings` },
  passthroughPrefix: openAiPrefix,
  namesOtherModel: namesOtherGoogleModel,
  editQuery: googleQuery,
  authorize: authorizeGoogle,
}
