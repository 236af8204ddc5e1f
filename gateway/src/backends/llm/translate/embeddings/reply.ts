import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import type { TranslationContext } from '../translate.ts'
import { invalidResponse } from '../upstream-error.ts'

/** A response of OpenAI's API from vectors and the count of input tokens. */
export function embeddingsReply(
  vectors: JsonValue | undefined,
  tokens: JsonValue | undefined,
  { requestModel, settings }: TranslationContext,
): JsonObject {
  if (!Array.isArray(vectors)) throw invalidResponse('it has no embeddings')
  const asBase64 = settings?.['encoding_format'] === 'base64'
  const count = typeof tokens === 'number' ? tokens : 0
  return {
    object: 'list',
    data: vectors.map((vector, index) => {
      const numbers = numbersIn(vector)
      return { object: 'embedding', index, embedding: asBase64 ? base64Of(numbers) : numbers }
    }),
    model: requestModel,
    usage: { prompt_tokens: count, total_tokens: count },
  }
}

function numbersIn(vector: JsonValue): number[] {
  if (!Array.isArray(vector)) throw invalidResponse('an embedding is not a list')
  return vector.map((value) => {
    // Numbers with more digits than a double has are opaque.
    const number = typeof value === 'number' ? value : Number(JSON.stringify(value))
    if (!Number.isFinite(number)) throw invalidResponse('an embedding is not a list of numbers')
    return number
  })
}

/** Little-endian 32-bit floats, as in OpenAI's API. */
function base64Of(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [index, number] of numbers.entries()) bytes.writeFloatLE(number, index * 4)
  return bytes.toString('base64')
}
