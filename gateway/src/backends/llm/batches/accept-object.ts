import { ownerOf } from '../../../identity/owner.ts'
import { exactObject } from '../../../lib/json/exact.ts'
import type { JsonText } from '../../../lib/json/text.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { BatchResults, Exchange } from '../../../pipeline/exchange.ts'
import { endpointLabels } from '../attempt/endpoint-labels.ts'
import type { Candidate } from '../models/candidate.ts'
import { maxModelLength } from '../models/name-pattern.ts'
import type { Target } from '../models/target.ts'
import { pathsOf } from '../providers/provider.ts'
import { kindsOffering } from '../providers/providers.ts'
import { modelNotAllowed, modelTooLong, type RequestRules } from '../request/accept-call.ts'
import { type Call, createCall } from '../request/call.ts'
import { operations } from '../request/endpoints.ts'
import { answerApiOf, configuredOf } from '../request/llm-message.ts'
import { placeOf } from '../stored/sealed-ids.ts'
import { checkRequests } from './batch-requests.ts'
import type { ObjectCall } from './object-call.ts'
import type { StoredObject } from './object-ids.ts'
import type { ObjectEndpoint } from './object-path.ts'

/** A call about a file or batch, at the target that has it. */
type ParsedObject = {
  readonly endpoint: ObjectEndpoint
  readonly candidate: Candidate
  /** Model as requested by the client that created the object. */
  readonly requestModel: string
  readonly json: JsonText | undefined
  readonly files: Call['files']
  readonly object: ObjectCall
}

/**
 * Stores the call. Returns a refusal for a model that the client may not use, and for a provider without the
 * call.
 */
export function acceptObject(
  exchange: Exchange,
  parsed: ParsedObject,
  rules: RequestRules,
): Reply | undefined {
  const { endpoint, candidate, requestModel, json, files, object } = parsed
  const { facts } = exchange
  if (requestModel.length > maxModelLength) return refuse(exchange, modelTooLong)
  facts.llm = {
    ...operations[endpoint],
    requestModel,
    configuredModel: undefined,
    provider: undefined,
    streaming: false,
    responseModel: undefined,
    cost: undefined,
    costStatus: undefined,
  }
  if (exchange.auth.models?.allows(requestModel) === false) return refuse(exchange, modelNotAllowed)
  if (!offers(candidate, endpoint)) return refuse(exchange, notOffered(candidate.target, endpoint))
  // The requests of a batch are facts of their own.
  if (object.batch === undefined) facts.llmRequest = json && exactObject(json)
  const call = createCall({
    endpoint,
    pathEndpoint: endpoint,
    bytes: json === undefined ? Buffer.alloc(0) : Buffer.from(json.text),
    json,
    files,
    reference: undefined,
    objectIds: undefined,
    sealsIds: false,
    ownFiles: undefined,
    stored: undefined,
    object,
    candidates: [candidate],
    streaming: false,
    hideUsage: false,
    modelInPath: false,
    anthropic: undefined,
    unchanged: false,
  })
  if (exchange.llm === undefined) return undefined
  const { batch } = object
  exchange.llm.call = call
  exchange.llm.isFree = object.charge === undefined
  exchange.llm.results = resultsOf(call, object)
  if (batch)
    exchange.llm.eachRequest = (check) =>
      checkRequests(exchange, batch, rules, (request) => check(request.exchange))
  return undefined
}

/** The results that a call reads, if they have texts of the model. */
function resultsOf(call: Call, { action, stored }: ObjectCall): BatchResults | undefined {
  const charge = action === 'content' ? stored?.charge : undefined
  const api = charge && answerApiOf(charge.endpoint)
  return api && { api, guardrailsOfModels: () => configuredOf(call, 'guardrails') }
}

/** Whether a target has the calls about an object. Those of one fixed path have none. */
export function offers({ target, model }: Candidate, endpoint: ObjectEndpoint): boolean {
  return (
    target.fixedPath === undefined &&
    pathsOf(target.provider, { model, streaming: false })[endpoint] !== undefined
  )
}

export function notOffered({ provider, configuredModel }: Target, endpoint: ObjectEndpoint): Refusal {
  const message = `provider ${provider.name} of model "${configuredModel}" does not offer ${endpointLabels[endpoint]}, which are not translated: use a model of another provider, such as ${kindsOffering(endpoint).join(', ')}`
  return { status: 400, code: 'unsupported_endpoint', message }
}

/**
 * The target that has an object. The choice of a virtual model may differ from the earlier one. Undefined if
 * the configuration has it no more.
 */
function targetOf(
  exchange: Exchange,
  { requestModel, configuredModel, place }: StoredObject,
  { models }: RequestRules,
): Candidate | undefined {
  const resolution = models.resolve(requestModel, exchange.facts)
  const candidates = resolution.kind === 'candidates' ? resolution.candidates : []
  const found = candidates.find(
    ({ target }) => target.configuredModel === configuredModel && placeOf(target) === place,
  )
  if (found !== undefined) return found
  const target = models.targetNamed?.(configuredModel)
  if (target === undefined || placeOf(target) !== place) return undefined
  return { target, model: target.upstreamModel ?? requestModel }
}

/** An object of the client with its id for clients, and the target that has it. */
export type OpenedObject = {
  readonly stored: StoredObject & { readonly text: string }
  readonly candidate: Candidate
}

/** The object of an id of this client, and the target that has it. */
export function openObject(
  exchange: Exchange,
  { endpoint, id }: { endpoint: ObjectEndpoint; id: string | undefined },
  rules: RequestRules,
): OpenedObject | undefined {
  const stored = id === undefined ? undefined : rules.objectIds.open(endpoint, id, ownerOf(exchange))
  if (id === undefined || stored === undefined) return undefined
  const candidate = targetOf(exchange, stored, rules)
  if (candidate === undefined) return undefined
  return { stored: { ...stored, text: id }, candidate }
}
