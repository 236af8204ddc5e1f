import { type BodySource, isSource } from '../../../../net/http/body.ts'
import { firstHeader } from '../../../../net/http/headers.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import { type Infer, name, object, optional, type Schema, string } from '../../../../schema/dsl.ts'
import type { Endpoint } from '../../request/endpoints.ts'
import { readBedrockError } from '../../translate/messages-to-converse/errors.ts'
import { toErrorBody } from '../../translate/upstream-error.ts'
import { pathSegment } from '../path-segment.ts'
import {
  type BodyChanges,
  bearer,
  type Provider,
  type ProviderCall,
  type ProviderKind,
  type ProviderPaths,
} from '../provider.ts'
import { chunkEvent, chunksEnd, converseEvent, messagesEvent, sseBody } from './sse-body.ts'
import { withTokenCount } from './token-count.ts'

/** `bedrock` of a provider. */
const fields = {
  region: name({ doc: 'Region of AWS.', example: 'us-east-1' }),
  guardrailIdentifier: optional(
    string({
      doc: 'Id or ARN of a guardrail of Amazon Bedrock, applied to every request. All models are then called by the Converse API.',
      example: 'gr-abc123',
    }),
  ),
  guardrailVersion: optional(
    string({ doc: 'Version of the guardrail: a number or `DRAFT`.', example: '1', default: 'DRAFT' }),
  ),
} satisfies Record<string, Schema>

const settingsSchema = object(fields, { doc: 'Region and guardrail of Amazon Bedrock.' })

type BedrockSettings = Infer<typeof settingsSchema>

/** The settings as keys of `llm.models[].params`. */
export const bedrockParams = {
  awsRegion: optional(fields.region),
  awsGuardrailIdentifier: fields.guardrailIdentifier,
  awsGuardrailVersion: fields.guardrailVersion,
} satisfies Record<string, Schema>

/**
 * Amazon Bedrock.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html
 */
export const bedrockKind: ProviderKind = {
  name: 'bedrock',
  fields,
  params: {
    region: 'awsRegion',
    guardrailIdentifier: 'awsGuardrailIdentifier',
    guardrailVersion: 'awsGuardrailVersion',
  },
  required: ['region'],
  ambientAuth: { aws: {} },
  check({ region, guardrailIdentifier, guardrailVersion }: BedrockSettings, report) {
    if (!/^[a-z]{2,4}(?:-[a-z]+)+-\d$/.test(region)) report('region', 'must be a region such as us-east-1')
    if (guardrailVersion === undefined) return
    if (guardrailIdentifier === undefined)
      report('guardrailVersion', 'is only valid with a guardrail identifier')
    if (!/^(?:[1-9]\d{0,7}|DRAFT)$/.test(guardrailVersion))
      report('guardrailVersion', 'must be a number or DRAFT')
  },
  configure({ region, guardrailIdentifier, guardrailVersion = 'DRAFT' }: BedrockSettings): Provider {
    const guardrail =
      guardrailIdentifier === undefined
        ? undefined
        : JSON.stringify({ guardrailIdentifier, guardrailVersion })
    const hasGuardrail = guardrail !== undefined
    const converseChanges = guardrail === undefined ? undefined : changesOf({ guardrailConfig: guardrail })
    return {
      name: 'bedrock',
      address: `https://bedrock-runtime.${region}.${region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'}`,
      paths: {},
      pathsFor: (call) => pathsOf(call, hasGuardrail),
      // All calls of models are read. The others name models in their bodies, and have no guardrail.
      namesOtherModel: () => true,
      editQuery: () => '',
      changesFor(endpoint, { model }) {
        if (endpoint === 'converse') return converseChanges
        return endpoint === 'bedrock_rerank' ? rerankChanges(model) : changes[endpoint]
      },
      anthropicBetas,
      isAnthropicModel: isClaude,
      readReply,
      errorBody: (endpoint, status, body) =>
        endpoint === 'messages' ? toErrorBody('anthropic', readBedrockError(status, body)) : undefined,
      signingRegion: region,
      // A key of Bedrock; identities sign the requests.
      authorize: bearer,
    }
  },
}

/** Paths of the calls of a model, which may be an ARN or an inference profile. */
function pathsOf({ model, streaming }: ProviderCall, hasGuardrail: boolean): ProviderPaths {
  const segment = pathSegment(model)
  if (segment === undefined) return {}
  const path = `/model/${segment}`
  const invoke = `${path}/invoke`
  const embeddings = embeddingsOf(model)
  if (embeddings !== undefined) return { [embeddings]: invoke, invoke }
  if (isReranker(model)) return { bedrock_rerank: invoke, invoke }
  const converse = `${path}/converse${streaming ? '-stream' : ''}`
  const invokeForm = streaming ? `${invoke}-with-response-stream` : invoke
  // A guardrail of `InvokeModel` is set in headers, and its decisions are in the body of the model.
  if (!isClaude(model)) return hasGuardrail ? { converse } : { converse, invoke: invokeForm }
  const paths: ProviderPaths = { converse, converse_count: `${path}/count-tokens` }
  // The messages API is complete for its own models; the guardrail's decisions are only in the Converse API.
  if (hasGuardrail) return paths
  return { ...paths, messages: invokeForm }
}

/** The API of a model of embeddings; undefined for other models. */
function embeddingsOf(model: string): Endpoint | undefined {
  if (/(?:^|[./])amazon\.titan-embed-text/.test(model)) return 'titan_embeddings'
  if (/(?:^|[./])cohere\.embed-/.test(model)) return 'cohere_embeddings'
  return /(?:^|[./])amazon\.nova-[a-z0-9-]*embeddings/.test(model) ? 'nova_embeddings' : undefined
}

/** Rerankers of Cohere and Amazon. */
function isReranker(model: string): boolean {
  return /(?:^|[./])(?:cohere|amazon)\.rerank-/.test(model)
}

/** Ids such as `us.anthropic.claude-...` and ARNs that end with one. Other ARNs do not name their model. */
function isClaude(model: string): boolean {
  return /(?:^|[./])anthropic\.claude/.test(model)
}

function changesOf(set: Record<string, string>, remove: readonly string[] = []): BodyChanges {
  return { set: new Map(Object.entries(set)), remove: new Set(remove) }
}

const changes: Readonly<Partial<Record<Endpoint, BodyChanges>>> = {
  // The path has the model and the kind of the response; the rest are settings of Anthropic's own service.
  messages: changesOf({ anthropic_version: '"bedrock-2023-05-31"' }, [
    ...['model', 'stream', 'service_tier', 'output_format', 'inference_geo', 'speed', 'diagnostics'],
  ]),
}

const cohereVersion = changesOf({ api_version: '2' })

/** Rerankers of Cohere name the version of their API. */
function rerankChanges(model: string): BodyChanges | undefined {
  return model.includes('cohere.') ? cohereVersion : undefined
}

/**
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html
 * and, for compaction, https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-compaction.html
 */
const anthropicBetas: ReadonlySet<string> = new Set([
  'compact-2026-01-12',
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dev-full-thinking-2025-05-14',
  'effort-2025-11-24',
  'fine-grained-tool-streaming-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'token-efficient-tools-2025-02-19',
  'tool-examples-2025-10-29',
  'tool-search-tool-2025-10-19',
])

const eventStreamType = 'application/vnd.amazon.eventstream'

/** Streams of the service are binary; the rest of the gateway reads server-sent events. */
function readReply(endpoint: Endpoint, reply: Reply): Reply {
  if (endpoint === 'cohere_embeddings' || endpoint === 'nova_embeddings') return withTokenCount(reply)
  const { body, headers } = reply
  if (!firstHeader(headers, 'content-type')?.startsWith(eventStreamType) || !isSource(body)) return reply
  return {
    ...reply,
    headers: { ...headers, 'content-type': 'text/event-stream' },
    body: eventsOf(endpoint, body),
  }
}

function eventsOf(endpoint: Endpoint, body: BodySource): BodySource {
  if (endpoint === 'invoke') return sseBody(body, chunkEvent, chunksEnd)
  return sseBody(body, endpoint === 'messages' ? messagesEvent : converseEvent)
}
