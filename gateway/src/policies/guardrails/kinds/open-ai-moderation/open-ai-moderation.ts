import { isJsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import { type Infer, name, object, optional, string } from '../../../../schema/dsl.ts'
import type { CompiledKind, GuardText, Rejection } from '../../guard.ts'
import { detectorFields } from '../service/config.ts'
import { compileDetector, invalidResponse, nameForLog } from '../service/detector.ts'
import { findFirst, piecesOf } from '../service/pieces.ts'
import { compileVendor } from '../service/service.ts'
import type { WebhookLimits } from '../webhook/limits.ts'

/** `openAIModeration`: https://platform.openai.com/docs/api-reference/moderations. */
export const openAiModerationSchema = object(
  {
    model: optional(name({ doc: 'Model of the moderation.', default: 'omni-moderation-latest' })),
    endpoint: optional(
      string({
        doc: 'Host or URL of a server with the same API. Its path precedes `/v1/moderations`.',
        default: 'https://api.openai.com',
        example: 'https://moderation.internal.example.com',
        advanced: true,
      }),
    ),
    ...detectorFields,
  },
  {
    doc: "Rejects content that OpenAI's moderation flags. The key is `policies.backendAuth.key`.",
    example: { policies: { backendAuth: { key: '$OPENAI_API_KEY' } } },
  },
)

export type OpenAiModerationConfig = Infer<typeof openAiModerationSchema>

const kind = 'openAIModeration'
/** Characters of an input: long inputs exceed the tokens of the models. */
const maxPieceLength = 10_000
/** Inputs of a call. */
const maxInputs = 32

export function compileOpenAiModeration(
  config: OpenAiModerationConfig,
  { rejection, limits }: { rejection: Rejection; limits: WebhookLimits },
  context: CompileContext,
): CompiledKind {
  const { model = 'omni-moderation-latest', endpoint = 'api.openai.com', policies } = config
  const service = compileVendor({ kind, endpoint, node: config, policies, limits }, context)
  return compileDetector({ config, service, rejection }, (texts, ask) =>
    findFirst(batchesOf(texts), async (input) =>
      flaggedIn(await ask('/v1/moderations', { model, input }), input.length),
    ),
  )
}

function batchesOf(texts: readonly GuardText[]): string[][] {
  const inputs = texts.flatMap(({ content }) => piecesOf(content, maxPieceLength))
  const batches: string[][] = []
  for (let start = 0; start < inputs.length; start += maxInputs)
    batches.push(inputs.slice(start, start + maxInputs))
  return batches
}

/** Categories of the first flagged input. Throws `CheckFailure` without one result per input. */
function flaggedIn(response: JsonValue, inputs: number): string | undefined {
  const results = isJsonObject(response) ? response['results'] : undefined
  if (!Array.isArray(results) || results.length !== inputs)
    throw invalidResponse(kind, 'not one result per input')
  let reason: string | undefined
  for (const result of results) {
    const { flagged, categories } = isJsonObject(result) ? result : {}
    if (typeof flagged !== 'boolean') throw invalidResponse(kind, 'a result without flagged')
    if (flagged) reason ??= `flagged: ${namesOf(categories)}`
  }
  return reason
}

function namesOf(categories: JsonValue | undefined): string {
  const entries = isJsonObject(categories) ? Object.entries(categories) : []
  const names = entries.flatMap(([name, isOne]) => (isOne === true ? [nameForLog(name)] : []))
  return names.length === 0 ? 'no category' : names.slice(0, 8).join(', ')
}
