import { hash } from 'node:crypto'
import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { estimateTokens } from '../../reply/usage.ts'
import type { EchoReply } from './echo-reply.ts'
import { modelOf } from './text.ts'

const defaultDimensions = 256
const maxDimensions = 4096
const maxInputs = 2048
/** Maximum numbers of one response, 10 to 20 ms: 512 inputs of the default size. */
const maxNumbers = 131_072

/** https://platform.openai.com/docs/api-reference/embeddings: unit vectors that depend on the input alone. */
export function echoEmbeddings(request: JsonObject): EchoReply {
  const { input, dimensions, encoding_format: format } = request
  const size =
    typeof dimensions === 'number' && dimensions >= 1
      ? Math.min(Math.floor(dimensions), maxDimensions)
      : defaultDimensions
  const inputs = inputsOf(input)
  if (inputs.length * size > maxNumbers) {
    return { kind: 'tooLarge', message: `echo answers ${maxNumbers} numbers: inputs times dimensions` }
  }
  const data = inputs.map((text, index) => {
    const vector = vectorOf(text, size)
    const embedding = format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector]
    return { object: 'embedding', index, embedding }
  })
  const tokens = estimateTokens(request)
  const usage = { prompt_tokens: tokens, total_tokens: tokens }
  return { kind: 'whole', body: { object: 'list', data, model: modelOf(request), usage } }
}

/** Texts, or lists of token ids, one or several. */
function inputsOf(input: JsonValue | undefined): string[] {
  if (!Array.isArray(input)) return [typeof input === 'string' ? input : '']
  if (typeof input[0] === 'number') return [JSON.stringify(input)]
  return input.slice(0, maxInputs).map((item) => (typeof item === 'string' ? item : JSON.stringify(item)))
}

function vectorOf(text: string, size: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(size)
  let state = Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16)
  let square = 0
  for (let index = 0; index < size; index++) {
    // Linear congruential generator of Numerical Recipes: the vectors need not be unpredictable.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    const value = state / 2 ** 31 - 1
    vector[index] = value
    square += value * value
  }
  const length = Math.sqrt(square) || 1
  return vector.map((value) => value / length)
}
