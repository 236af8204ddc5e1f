import { editBytes, type JsonEdits } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { readJson } from '../../../lib/json/read.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { requestPath } from '../attempt/provider-request.ts'
import { acceptCall, type ParsedCall, type RequestRules } from './accept-call.ts'
import { settingsInBody } from './anthropic-settings.ts'
import { type BedrockCall, bedrockCallIn } from './bedrock-path.ts'
import { invalidField } from './body-checks.ts'
import type { ClientEndpoint } from './endpoints.ts'
import { geminiCallIn } from './gemini-path.ts'
import { vertexCallIn } from './vertex-path.ts'

type Read = Omit<ParsedCall, 'model' | 'endpoint' | 'streaming'> & {
  endpoint: ClientEndpoint
  json: JsonText
}

type Accepted = Promise<Reply | undefined> | Reply | undefined

/** Accepts a call whose path has the model and the form of the response; `other` accepts the rest. */
export function acceptPathCall(
  exchange: Exchange,
  read: Read,
  rules: RequestRules,
  other: () => Accepted,
): Accepted {
  switch (read.endpoint) {
    case 'generate_content':
    case 'gemini_count_tokens':
    case 'embed_content':
    case 'batch_embed_contents':
      return acceptGemini(exchange, read, rules)
    case 'converse':
    case 'converse_count':
    case 'invoke':
      return acceptBedrock(exchange, read, rules)
    case 'messages': {
      const { model, streaming = false } = vertexCallIn(requestPath(exchange)) ?? {}
      if (model === undefined) return other()
      return acceptMessages(exchange, read, { model, streaming }, rules)
    }
    default:
      return other()
  }
}

/** Accepts a call of the Gemini API. */
function acceptGemini(exchange: Exchange, read: Read, rules: RequestRules): Reply | undefined {
  const { model, streaming = false } = geminiCallIn(requestPath(exchange)) ?? {}
  if (model === undefined) return refuse(exchange, missingPathModel)
  return acceptCall(exchange, { ...read, model, streaming }, rules)
}

/** Accepts a call of Amazon Bedrock. The body of `InvokeModel` is of the API of its model. */
function acceptBedrock(exchange: Exchange, read: Read, rules: RequestRules): Accepted {
  const call = bedrockCallIn(requestPath(exchange))
  if (call === undefined) return refuse(exchange, missingBedrockModel)
  const guardrail = guardrailIssue(exchange, call)
  if (guardrail) return refuse(exchange, guardrail)
  const { model, streaming } = call
  const anthropic = call.endpoint === 'converse' ? settingsOfModel(read.json.value) : undefined
  if (anthropic && 'status' in anthropic) return refuse(exchange, anthropic)
  if (call.endpoint === 'invoke' && Object.hasOwn(read.json.value, 'anthropic_version'))
    return acceptMessages(exchange, { ...read, endpoint: 'messages' }, call, rules)
  return acceptCall(exchange, { ...read, model, streaming, ...(anthropic && { anthropic }) }, rules)
}

/** Betas in the fields that `Converse` passes on to a model; undefined without any. */
function settingsOfModel({ additionalModelRequestFields: fields }: JsonObject) {
  return isJsonObject(fields) && Object.hasOwn(fields, 'anthropic_beta') ? settingsInBody(fields) : undefined
}

/**
 * Refuses guardrails that a client names in headers, which are not forwarded: without an error, the client
 * would rely on them.
 */
function guardrailIssue({ facts }: Exchange, { endpoint }: BedrockCall): Refusal | undefined {
  const header = 'x-amzn-bedrock-guardrailidentifier'
  if (endpoint !== 'invoke' || firstHeader(facts.request.headers, header) === undefined) return undefined
  return invalidField(header, 'guardrails in headers are not forwarded: use Converse with guardrailConfig')
}

const removed: ReadonlySet<string> = new Set(['anthropic_version', 'anthropic_beta'])

/** Accepts Anthropic's messages in the form of a cloud, as a request of messages with model and form. */
function acceptMessages(
  exchange: Exchange,
  read: Read,
  { model, streaming }: { model: string; streaming: boolean },
  rules: RequestRules,
): Accepted {
  const { json, bytes } = read
  const anthropic = settingsInBody(json.value)
  if ('status' in anthropic) return refuse(exchange, anthropic)
  const set = new Map([
    ['model', JSON.stringify(model)],
    ['stream', String(streaming)],
  ])
  const edited = editedBody(json, { set, remove: removed }, rules)
  const accept = (body: { json: JsonText; bytes: Buffer }) =>
    acceptCall(exchange, { ...read, ...body, model, anthropic, original: { json, bytes } }, rules)
  return edited instanceof Promise ? edited.then(accept) : accept(edited)
}

type EditedBody = { json: JsonText; bytes: Buffer }

function editedBody(
  json: JsonText,
  edits: JsonEdits,
  { workQueue, jsonLimits }: RequestRules,
): EditedBody | Promise<EditedBody> {
  const bytes = editBytes(json, edits)
  // The body of the client is within the limits, also if the fields that were added are not.
  const added = edits.set?.size ?? 0
  const maxMembers = jsonLimits.maxMembers + added
  const maxElements = jsonLimits.maxElements + added
  const reading = readJson(bytes, workQueue, { ...jsonLimits, maxMembers, maxElements })
  const checked = (edited: Awaited<typeof reading>): EditedBody => {
    if (edited.kind !== 'object') throw new Error('the edited body is not a JSON object')
    return { json: edited, bytes }
  }
  return reading instanceof Promise ? reading.then(checked) : checked(reading)
}

const missingPathModel: Refusal = {
  status: 400,
  code: 'missing_model',
  message: 'the path must have a model: /v1beta/models/{model}:generateContent',
}

const missingBedrockModel: Refusal = {
  ...missingPathModel,
  message: 'the path must have a model: /model/{model}/converse',
}
