import { isSource } from '../../../../net/http/body.ts'
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
import { converseEvent, messagesEvent, sseBody } from './sse-body.ts'
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
      // Calls that are forwarded unread would not have the guardrail.
      namesOtherModel: hasGuardrail ? () => true : namesOtherBedrockModel,
      editQuery: () => '',
      changesFor: (endpoint) => (endpoint === 'converse' ? converseChanges : changes[endpoint]),
      readReply,
      errorBody: (_, status, body) => toErrorBody('anthropic', readBedrockError(status, body)),
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
  if (/(?:^|[./])amazon\.titan-embed-text/.test(model)) return { titan_embeddings: invoke }
  if (/(?:^|[./])cohere\.embed-/.test(model)) return { cohere_embeddings: invoke }
  if (/(?:^|[./])amazon\.nova-[a-z0-9-]*embeddings/.test(model)) return { nova_embeddings: invoke }
  const converse = `${path}/converse${streaming ? '-stream' : ''}`
  if (!isClaude(model)) return { converse }
  const paths: ProviderPaths = { converse, converse_count: `${path}/count-tokens` }
  // The messages API is complete for its own models; the guardrail's decisions are only in the Converse API.
  if (hasGuardrail) return paths
  return { ...paths, messages: streaming ? `${invoke}-with-response-stream` : invoke }
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

/** True if a path names a model that is not `model`. `path` is decoded, in lower case. */
function namesOtherBedrockModel(path: string, model: string): boolean {
  const start = path.indexOf('/model/')
  return start === -1 || !path.slice(start + '/model/'.length).startsWith(`${model.toLowerCase()}/`)
}

const eventStreamType = 'application/vnd.amazon.eventstream'

/** Streams of the service are binary; the rest of the gateway reads server-sent events. */
function readReply(endpoint: Endpoint, reply: Reply): Reply {
  if (endpoint === 'cohere_embeddings' || endpoint === 'nova_embeddings') return withTokenCount(reply)
  const { body, headers } = reply
  if (!firstHeader(headers, 'content-type')?.startsWith(eventStreamType) || !isSource(body)) return reply
  const toSse = endpoint === 'messages' ? messagesEvent : converseEvent
  return {
    ...reply,
    headers: { ...headers, 'content-type': 'text/event-stream' },
    body: sseBody(body, toSse),
  }
}
