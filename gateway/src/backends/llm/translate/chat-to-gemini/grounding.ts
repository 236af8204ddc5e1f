import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { toAnnotation } from '../citations/url-citations.ts'

/**
 * Annotations of a chat completion for the `groundingMetadata` of a candidate with a text. Gemini counts the
 * bytes of the text, chat its characters. https://ai.google.dev/api/generate-content#GroundingMetadata
 */
export function groundingAnnotations(metadata: JsonValue | undefined, text: string): JsonObject[] {
  if (!isJsonObject(metadata)) return []
  const { groundingChunks, groundingSupports } = metadata
  const chunks = Array.isArray(groundingChunks) ? groundingChunks : []
  const supports = Array.isArray(groundingSupports) ? groundingSupports.filter(isJsonObject) : []
  const bytes = supports.length === 0 ? undefined : Buffer.from(text)
  const lengthTo = (index: JsonValue | undefined) =>
    bytes === undefined || typeof index !== 'number'
      ? 0
      : bytes.subarray(0, Math.max(0, index)).toString().length
  return supports.flatMap(({ segment, groundingChunkIndices: indices }) => {
    // Google omits numbers that are zero.
    const { startIndex, endIndex } = isJsonObject(segment) ? segment : {}
    const range = { start: lengthTo(startIndex), end: lengthTo(endIndex) }
    return (Array.isArray(indices) ? indices : []).flatMap((index) => {
      const page = typeof index === 'number' ? pageOf(chunks[index]) : undefined
      return page === undefined ? [] : [toAnnotation(page.uri, page.title, range)]
    })
  })
}

/** A page of a search, a document that was retrieved, or a place. */
function pageOf(chunk: JsonValue | undefined): { uri: string; title: JsonValue | undefined } | undefined {
  if (!isJsonObject(chunk)) return undefined
  const page = chunk.web ?? chunk.retrievedContext ?? chunk.maps
  if (!isJsonObject(page) || typeof page.uri !== 'string' || page.uri === '') return undefined
  return { uri: page.uri, title: page.title }
}
