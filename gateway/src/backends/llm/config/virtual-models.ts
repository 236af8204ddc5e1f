import {
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  list,
  map,
  name,
  object,
  optional,
} from '../../../schema/dsl.ts'
import { affinitySchemaOf } from '../../../upstream/affinity/affinity.ts'
import { maxModelLength } from '../models/name-pattern.ts'
import { routingRoots } from './model-settings.ts'

const target = name({
  doc: 'Model name, matched against `llm.models` like the name in a request. Internal models are included.',
})

/** Settings of choices among several targets. */
const choiceFields = {
  sessionAffinity: optional(
    affinitySchemaOf(
      routingRoots,
      'Expression of a text or bytes. Requests of the same value go to the same target, so that its prompt cache is used. Without a value, or after a failed evaluation, the choice is random.',
      'Sends requests of a session to one target, without state: a change or an eviction of a target moves the sessions of that target only.',
    ),
  ),
  requiredLabels: optional(
    map(cel({ doc: 'Expression of the required value, or of a list of permitted values.' }, routingRoots), {
      doc: 'Labels that the model of a target must have, for example the region of the caller. Other targets are not used. Without a target, or after a failed evaluation, the request is refused.',
      example: { region: 'apiKey.region' },
    }),
  ),
}

const weighted = object(
  {
    targets: list(
      object(
        {
          model: target,
          weight: optional(
            integer(
              {
                doc: 'Share of the requests, relative to the sum of the weights. A target with weight 0 is never selected.',
                default: 1,
              },
              { min: 0, max: 1_000_000 },
            ),
          ),
        },
        { doc: 'One target.' },
      ),
      { doc: 'Targets for a random selection by weight, once per request.' },
      { min: 1 },
    ),
    ...choiceFields,
  },
  { doc: 'Distributes requests by weight.' },
)

const failover = object(
  {
    targets: list(
      object(
        {
          model: target,
          priority: integer(
            { doc: 'Priority: lower numbers first. Targets of equal priority share the load.' },
            { min: 0 },
          ),
        },
        { doc: 'One target.' },
      ),
      {
        doc: 'Targets by priority. A failed connection, a timeout, 5xx, 429, and a stream that fails before its first content lead to the next target.',
      },
      { min: 1 },
    ),
    ...choiceFields,
    prefer: optional(
      enumeration(['latency', 'cost'], {
        doc: 'Order of targets of equal priority. `latency`: of two random targets, the one with the shorter recent time to the first byte. `cost`: the lowest price of the request in `config.modelCatalog`.',
        default: 'random',
      }),
    ),
    contextFallback: optional(
      boolean({
        doc: 'Uses targets with a larger context window if a prompt is too long: targets whose `contextWindow` in `config.modelCatalog` is smaller than the estimated prompt are tried last, and an error of a provider about the length of the prompt leads to the next target.',
        default: false,
      }),
    ),
    hedge: optional(
      object(
        {
          delay: duration({
            doc: 'Time without content of a stream, after which the request is sent to the next target, too.',
            example: '2s',
          }),
        },
        {
          doc: 'Sends streamed requests to a second target if the first is slow. The first content wins, and the other request is cancelled; its prompt is charged as an estimate.',
          advanced: true,
        },
      ),
    ),
  },
  { doc: 'Fails over to the next target within a request.' },
)

const conditional = object(
  {
    targets: list(
      object(
        {
          when: optional(cel({ doc: 'Condition; only the last target may be without one.' }, routingRoots)),
          model: target,
        },
        { doc: 'One target.' },
      ),
      {
        doc: 'Conditions in order. The first true condition selects its target; an evaluation error counts as false.',
      },
      { min: 1 },
    ),
  },
  { doc: 'Selects the target by properties of the request.' },
)

/** An item of `llm.virtualModels`. */
export const virtualModelSchema = object(
  {
    name: name(
      {
        doc: 'Exact model name in client requests. Takes precedence over `llm.models`.',
        example: 'fast',
      },
      { max: maxModelLength },
    ),
    routing: exactlyOne({ weighted, failover, conditional }, {}, { doc: 'Selection of the target.' }),
  },
  { doc: 'A model name with several targets.' },
)

export type VirtualModelConfig = Infer<typeof virtualModelSchema>
export type RoutingConfig = VirtualModelConfig['routing']
export type FailoverConfig = NonNullable<RoutingConfig['failover']>
export type WeightedConfig = NonNullable<RoutingConfig['weighted']>
