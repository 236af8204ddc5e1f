import type { Headers } from '../../../net/http/headers.ts'
import { decodeSegment } from './decode-segment.ts'

export type GeminiEndpoint =
  | 'generate_content'
  | 'gemini_count_tokens'
  | 'embed_content'
  | 'batch_embed_contents'

/** A call of the Gemini API, whose model and form are in its path. */
export type GeminiCall = {
  readonly endpoint: GeminiEndpoint
  /** Without its collection `models`, with other ones. */
  readonly model: string
  readonly streaming: boolean
}

const methods: ReadonlyMap<string, GeminiEndpoint> = new Map([
  ['generateContent', 'generate_content'],
  ['streamGenerateContent', 'generate_content'],
  ['countTokens', 'gemini_count_tokens'],
  ['embedContent', 'embed_content'],
  ['batchEmbedContents', 'batch_embed_contents'],
])

/** Calls of the Gemini API. */
const geminiEndpoints: ReadonlySet<string> = new Set(methods.values())

const form = new RegExp(`/(models|tunedModels)/([^/]+):(${[...methods.keys()].join('|')})$`)

/** True for a call whose model is in its path. */
export function isGeminiEndpoint(endpoint: string): boolean {
  return geminiEndpoints.has(endpoint)
}

/**
 * The call of a path with any prefix, such as `/v1beta/models/gemini-2.5-pro:generateContent` or
 * `/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:countTokens`; undefined for other
 * paths.
 */
export function geminiCallIn(path: string): GeminiCall | undefined {
  // Most paths are those of other APIs.
  if (!path.endsWith('Content') && !path.endsWith('Tokens') && !path.endsWith('Contents')) return undefined
  const [, collection, segment = '', method = ''] = form.exec(path) ?? []
  const name = decodeSegment(segment)
  const endpoint = methods.get(method)
  if (collection === undefined || name === undefined || endpoint === undefined) return undefined
  return {
    endpoint,
    model: collection === 'models' ? name : `${collection}/${name}`,
    streaming: method === 'streamGenerateContent',
  }
}

/** True for a canonical path, in lower case, of a method that `geminiCallIn` reads in its own spelling. */
export function isGeminiMethod(path: string): boolean {
  return /:(?:(?:stream)?generatecontent|counttokens|embedcontent|batchembedcontents)$/.test(path)
}

/** Model of a path of Google's list of models; undefined for the list itself. */
type GeminiModels = { readonly id: string | undefined }

const modelsForm = /\/v1(?:alpha|beta)\d?\/models(?:\/(.+))?$/

/**
 * The model in a path such as `/v1beta/models` or `/v1beta/models/gemini-2.5-pro`; undefined for other paths,
 * such as those of methods of a model.
 */
export function geminiModelsIn(path: string): GeminiModels | undefined {
  if (!path.includes('/v1beta') && !path.includes('/v1alpha')) return undefined
  const found = modelsForm.exec(path)
  if (found === null) return undefined
  const [, segment] = found
  if (segment === undefined) return { id: undefined }
  const id = decodeSegment(segment)
  return id === undefined || /:[a-z]\w*$/i.test(segment) ? undefined : { id }
}

/** True for a stream without `alt=sse`, whose form is a JSON array. */
export function wantsJsonArray(query: string): boolean {
  const parameters = new URLSearchParams(query)
  return (parameters.get('alt') ?? parameters.get('$alt')) !== 'sse'
}

/** True for a client of Google, which reads the list of models at the path of OpenAI's, too. */
export function isGoogleClient(headers: Headers): boolean {
  return headers['x-goog-api-client'] !== undefined || headers['x-goog-api-key'] !== undefined
}
