import { firstHeader } from '../../../net/http/headers.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { endpointLabels } from '../attempt/endpoint-labels.ts'
import { offers } from '../batches/accept-object.ts'
import type { ObjectEndpoint } from '../batches/object-path.ts'
import type { Candidate } from '../models/candidate.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField } from '../request/body-checks.ts'
import { placeOf } from '../stored/sealed-ids.ts'

/** Header with the model whose provider stores a file. */
const modelHeader = 'x-tollgate-model'

type Chosen =
  | { readonly kind: 'chosen'; readonly candidate: Candidate; readonly requestModel: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** The target of the model in the header, else the only provider that has the call. */
export function chooseTarget(
  { facts }: Exchange,
  endpoint: ObjectEndpoint,
  { models }: RequestRules,
): Chosen {
  const named = firstHeader(facts.request.headers, modelHeader)
  if (named !== undefined) {
    const resolution = models.resolve(named, facts)
    if (resolution.kind === 'refused') return resolution
    const [candidate] = resolution.candidates
    if (candidate !== undefined) return { kind: 'chosen', candidate, requestModel: named }
  }
  const candidates = (models.listed?.(facts) ?? [])
    .map((target): Candidate => ({ target, model: target.upstreamModel ?? target.configuredModel }))
    .filter((candidate) => offers(candidate, endpoint))
  const [first] = candidates
  const places = new Set(candidates.map(({ target }) => placeOf(target)))
  if (first === undefined || places.size > 1)
    return { kind: 'refused', refusal: unclear(endpoint, places.size) }
  return { kind: 'chosen', candidate: first, requestModel: first.target.configuredModel }
}

function unclear(endpoint: ObjectEndpoint, places: number): Refusal {
  const reason = places === 0 ? 'no provider has' : `${places} providers have`
  return {
    ...invalidField(
      modelHeader,
      `${reason} ${endpointLabels[endpoint]}: name a model of the provider in the header ${modelHeader}`,
    ),
    code: 'missing_model',
  }
}
