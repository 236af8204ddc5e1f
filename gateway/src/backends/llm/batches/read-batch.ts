import { isJsonObject } from '../../../lib/json/json.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { endpointLabels } from '../attempt/endpoint-labels.ts'
import type { Candidate } from '../models/candidate.ts'
import { pathsOf } from '../providers/provider.ts'
import { estimateTokens } from '../reply/usage.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField } from '../request/body-checks.ts'
import type { ClientEndpoint } from '../request/endpoints.ts'
import { outputLimit } from '../request/output-limit.ts'
import { notOffered, offers } from './accept-object.ts'
import { type Batch, type BatchFormat, type BatchItem, maxRequests } from './batch.ts'
import { candidateAt, checkRequests, located, openRequest, readItem, refuseItem } from './batch-requests.ts'

/** Paths of requests in files, with and without the version, as Azure documents them. */
const endpointsByUrl: ReadonlyMap<string, ClientEndpoint> = new Map(
  (
    [
      ['/chat/completions', 'chat'],
      ['/completions', 'completions'],
      ['/embeddings', 'embeddings'],
      ['/responses', 'responses'],
      ['/moderations', 'moderations'],
    ] as const
  ).flatMap(([path, endpoint]): [string, ClientEndpoint][] => [
    [path, endpoint],
    [`/v1${path}`, endpoint],
  ]),
)

/** The call of the `url` of a request; undefined for calls that batches do not have. */
export function endpointOfUrl(url: string): ClientEndpoint | undefined {
  return endpointsByUrl.get(url)
}

/** The checked requests of a batch, and the target of all of them. */
type ReadBatch =
  | { readonly kind: 'batch'; readonly batch: Batch; readonly candidate: Candidate }
  | { readonly kind: 'refused'; readonly reply: Reply }

/**
 * Reads the requests of a batch as single calls of the client: models, keys and bodies are checked. They have
 * one model and one target, because a batch belongs to one account.
 */
export async function readBatchItems(
  exchange: Exchange,
  texts: readonly Buffer[],
  format: BatchFormat,
  rules: RequestRules,
): Promise<ReadBatch> {
  const items = texts.map((text, index): BatchItem => ({ text, position: index + 1, changed: undefined }))
  const [first] = items
  if (first === undefined || items.length > maxRequests)
    return refused(exchange, `a batch must have 1 to ${maxRequests} requests`)
  const shared = await sharedOf(first, format, rules)
  if (shared.kind === 'refused')
    return { kind: 'refused', reply: located(refuseItem(exchange, first, shared.refusal), first) }
  const { endpoint, model, url } = shared
  const draft = { format, endpoint, model, items }
  const opened = await openRequest(exchange, first, draft, rules)
  if (opened.kind === 'refused') return { kind: 'refused', reply: located(opened.reply, first) }
  const [candidate] = opened.call.candidates
  if (candidate === undefined) return refused(exchange, 'no model serves the requests')
  const { target } = candidate
  if (!offers(candidate, format.creates))
    return { kind: 'refused', reply: refuse(exchange, notOffered(target, format.creates)) }
  if (pathsOf(target.provider, { model: candidate.model, streaming: false })[endpoint] === undefined)
    return { kind: 'refused', reply: refuse(exchange, notTranslated(draft, candidate)) }
  const counts = { inputTokens: 0, outputTokens: 0 }
  const reply = await checkRequests(exchange, draft, rules, (request) => {
    if (url !== undefined && request.json.value['url'] !== url)
      return refuseItem(
        exchange,
        request,
        invalidField('url', `all requests of a file must have one url: ${url}`),
      )
    if (candidateAt(request.call, target) === undefined) return refuseItem(exchange, request, otherTarget)
    if (endpoint === 'moderations') return undefined
    const { llmRequest = {} } = request.exchange.facts
    counts.inputTokens += estimateTokens(llmRequest)
    counts.outputTokens += outputLimit(endpoint, llmRequest, target)
    return undefined
  })
  if (reply !== undefined) return { kind: 'refused', reply }
  return { kind: 'batch', batch: { ...draft, facts: { endpoint, ...counts } }, candidate }
}

function refused(exchange: Exchange, message: string): ReadBatch {
  return { kind: 'refused', reply: refuse(exchange, invalidField(undefined, message)) }
}

/** Properties of the first request that all others must have. */
async function sharedOf({ text }: BatchItem, format: BatchFormat, rules: RequestRules) {
  const read = await readItem(text, format, rules)
  if (read.kind === 'refused') return read
  const { url } = read.json.value
  const body = read.json.value[format.body]
  const model = isJsonObject(body) ? body['model'] : undefined
  if (typeof model !== 'string' || model === '')
    return { kind: 'refused', refusal: invalidField('model', 'model must be a non-empty string') } as const
  if (!format.members.has('url'))
    return { kind: 'shared', endpoint: 'messages', model, url: undefined } as const
  const endpoint = typeof url === 'string' ? endpointOfUrl(url) : undefined
  if (endpoint === undefined || typeof url !== 'string')
    return {
      kind: 'refused',
      refusal: invalidField(
        'url',
        `url must be one of ${[...endpointsByUrl.keys()].filter((path) => path.startsWith('/v1')).join(', ')}`,
      ),
    } as const
  return { kind: 'shared', endpoint, model, url } as const
}

/** The refusal of requests whose call only a translation would serve. */
export function notTranslated(
  { model, endpoint }: Pick<Batch, 'model' | 'endpoint'>,
  candidate: Candidate,
): Refusal {
  const paths = pathsOf(candidate.target.provider, { model: candidate.model, streaming: false })
  const urls = [...endpointsByUrl].flatMap(([url, other]) =>
    url.startsWith('/v1') && paths[other] !== undefined ? [url] : [],
  )
  const others =
    endpoint === 'messages' || urls.length === 0 ? '' : `, or a url of this one: ${urls.join(', ')}`
  return {
    status: 400,
    code: 'unsupported_endpoint',
    message: `model "${model.slice(0, 100)}" does not offer ${endpointLabels[endpoint]}, and batches are not translated: use another model${others}`,
  }
}

const otherTarget = invalidField(
  'model',
  'all requests of a batch must be served by one entry of llm.models: use a model that is not virtual',
)
