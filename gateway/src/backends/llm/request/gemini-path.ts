import { decodeSegment } from './decode-segment.ts'

/** A call of the Gemini API, whose model and form are in its path. */
export type GeminiCall = {
  readonly endpoint: 'generate_content' | 'gemini_count_tokens'
  /** Without its collection `models`, with other ones. */
  readonly model: string
  readonly streaming: boolean
}

const form = /\/(models|tunedModels)\/([^/]+):(generateContent|streamGenerateContent|countTokens)$/

/**
 * The call of a path with any prefix, such as `/v1beta/models/gemini-2.5-pro:generateContent` or
 * `/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:countTokens`; undefined for other
 * paths.
 */
export function geminiCallIn(path: string): GeminiCall | undefined {
  // Most paths are those of other APIs.
  if (!path.endsWith('Content') && !path.endsWith('Tokens')) return undefined
  const [, collection, segment = '', method] = form.exec(path) ?? []
  const name = decodeSegment(segment)
  if (collection === undefined || name === undefined) return undefined
  return {
    endpoint: method === 'countTokens' ? 'gemini_count_tokens' : 'generate_content',
    model: collection === 'models' ? name : `${collection}/${name}`,
    streaming: method === 'streamGenerateContent',
  }
}

/** True for a canonical path, in lower case, of a method that `geminiCallIn` reads in its own spelling. */
export function isGeminiMethod(path: string): boolean {
  return /:(?:(?:stream)?generatecontent|counttokens)$/.test(path)
}
