import {
  anyOfShapes,
  boolean,
  cel,
  duration,
  enumeration,
  exactlyOne,
  type Infer,
  integer,
  jsonObject,
  list,
  name,
  object,
  optional,
  port,
  type Schema,
  type SecretSource,
  secretSource,
  string,
  url,
} from '../../../schema/dsl.ts'
import { gatewayReferences } from '../../../schema/gateway-references.ts'

/** CEL variables that exist where a virtual model chooses its target. */
export const routingRoots = ['now', 'request', 'source', 'jwt', 'apiKey', 'llmRequest', 'llm'] as const

const modelName = name({
  doc: 'Model name sent upstream in place of the one the client sent.',
  example: 'gpt-4o-mini',
})

const params = object(
  {
    model: optional(modelName),
    apiKey: optional(
      secretSource({
        doc: 'Credential of the provider. Without it, a credential of the client that no gateway policy has used goes through.',
        example: '$OPENAI_API_KEY',
      }),
    ),
    baseUrl: optional(
      url({
        doc: "Address of the provider, with the path in front of its calls. Without a path, the provider's usual one is used.",
        example: 'http://localhost:11434/v1',
        default: "the provider's own address",
      }),
    ),
  },
  { doc: 'Where and how the provider is called.' },
)

const defaults = jsonObject({
  doc: 'Fields of the request body that are set where the client left them out.',
  example: { temperature: 0.2 },
})

const headerMatch = object(
  {
    name: name({ doc: 'Name of a request header, in any case.', example: 'x-team' }),
    value: exactlyOne(
      {
        exact: string({ doc: 'The whole value.' }),
        regex: string({ doc: 'RE2 pattern that some part of the value matches; anchor it with ^ and $.' }),
      },
      {},
      { doc: 'What the value has to be.' },
    ),
  },
  { doc: 'One header the request must have.' },
)

const modelFields = {
  name: name({
    doc: 'Model name clients ask for: exact, `*`, `prefix*` or `*suffix`. The most literal characters win, then the order here.',
    example: 'gpt-4o',
  }),
  id: optional(
    name({ doc: 'Identity of this entry in the config API.', default: 'the name', advanced: true }),
  ),
  provider: anyOfShapes(
    [
      name({ doc: 'Kind of provider.', example: 'openai' }),
      object(
        { reference: name({ doc: 'Name of an entry of `llm.providers`.' }) },
        { doc: 'Shared settings.' },
      ),
    ],
    {
      doc: 'Who serves the model: a provider kind, or `{reference: name}` for an entry of `llm.providers`.',
    },
  ),
  params: optional(params),
  defaults: optional(defaults),
  overrides: optional(
    jsonObject({
      doc: 'Fields of the request body that are set whatever the client sent.',
      example: { store: false },
    }),
  ),
  visibility: optional(
    enumeration(['public', 'internal'], {
      doc: '`internal` models are reached through virtual models only, and not listed.',
      default: 'public',
    }),
  ),
  matches: optional(
    list(
      object(
        { headers: list(headerMatch, { doc: 'All of them must match.' }) },
        { doc: 'One way to match.' },
      ),
      {
        doc: 'Which requests the entry serves, beside the name; any one of them suffices.',
        default: 'all',
      },
    ),
  ),
} satisfies Record<string, Schema>

const modelMeta = { doc: 'A model clients may ask for, and who serves it.' }

const model = object(modelFields, modelMeta)

const provider = object(
  {
    name: name({ doc: 'Name that models refer to.' }),
    provider: name({ doc: 'Kind of provider.', example: 'openai' }),
    params: optional(params),
    defaults: optional(defaults),
  },
  { doc: 'Settings of a provider, shared by the models that refer to it.' },
)

const target = name({
  doc: 'Name of a model, matched against `llm.models` as a client’s would be; internal ones included.',
})

const routing = exactlyOne(
  {
    weighted: object(
      {
        targets: list(
          object(
            {
              model: target,
              weight: optional(
                integer(
                  { doc: 'Share among the weights; 0 is never chosen.', default: 1 },
                  { min: 0, max: 1_000_000 },
                ),
              ),
            },
            { doc: 'One target.' },
          ),
          { doc: 'Chosen at random by weight, once for each request.' },
          { min: 1 },
        ),
      },
      { doc: 'Splits the requests by weight.' },
    ),
    failover: object(
      {
        targets: list(
          object(
            {
              model: target,
              priority: integer({ doc: 'Lower numbers come first; equal ones share the load.' }, { min: 0 }),
            },
            { doc: 'One target.' },
          ),
          {
            doc: 'Tried until one answers: a failed connection, a time limit, 5xx and 429 lead to the next.',
          },
          { min: 1 },
        ),
      },
      { doc: 'Goes on to the next target while a request fails.' },
    ),
    conditional: object(
      {
        targets: list(
          object(
            {
              when: optional(
                cel({ doc: 'Condition; only the last target may be without one.' }, routingRoots),
              ),
              model: target,
            },
            { doc: 'One target.' },
          ),
          {
            doc: 'The first whose condition holds serves the request; a condition that cannot be evaluated does not hold.',
          },
          { min: 1 },
        ),
      },
      { doc: 'Chooses by the request.' },
    ),
  },
  {},
  { doc: 'How a target is chosen.' },
)

const virtualModel = object(
  {
    name: name({ doc: 'Model name clients ask for, exact. Comes before `llm.models`.', example: 'fast' }),
    routing,
  },
  { doc: 'A name that stands for several models.' },
)

const modelsMeta = { doc: 'The models clients may ask for.' }

/** The fields of `llm` that this backend owns; `llm.policies` is added by whoever composes the section. */
export const llmFields = {
  port: optional(
    port({
      doc: 'Port of an LLM endpoint of its own.',
      default: '4000 where there is neither gateways nor a gateway named default',
    }),
  ),
  gateways: optional(gatewayReferences),
  models: list(model, modelsMeta),
  providers: optional(list(provider, { doc: 'Provider settings shared by models.' })),
  virtualModels: optional(list(virtualModel, { doc: 'Names that stand for several models.' })),
  passthrough: optional(
    boolean({
      doc: 'Forwards paths that are no known LLM call, with the provider’s credential, to the model the body names or else to the model named `*`.',
      default: false,
      advanced: true,
    }),
  ),
  timeouts: optional(
    object(
      {
        firstByte: optional(duration({ doc: 'Longest wait for the head of an answer.', default: '10m' })),
        idle: optional(duration({ doc: 'Longest silence inside an answer.', default: '5m' })),
      },
      { doc: 'Time limits of calls to providers.', advanced: true },
    ),
  ),
} satisfies Record<string, Schema>

/** The same with what the `guardrails` of a model are, which is not this backend's business. */
export function guardedLlmFields<G>(guardrails: Schema<G>) {
  return {
    ...llmFields,
    models: list(object({ ...modelFields, guardrails: optional(guardrails) }, modelMeta), modelsMeta),
  }
}

export type LlmParams = {
  model?: string | undefined
  apiKey?: SecretSource | undefined
  baseUrl?: string | undefined
}
export type ModelConfig = Infer<typeof model> & {
  /** Not of this backend's making: it only knows which ones a model has. */
  guardrails?: object | undefined
}
export type ProviderConfig = Infer<typeof provider>
export type VirtualModelConfig = Infer<typeof virtualModel>
export type RoutingConfig = VirtualModelConfig['routing']

/** The part of the `llm` section this backend reads. */
export type LlmConfig = {
  port?: number | undefined
  gateways?: string | readonly string[] | undefined
  models: readonly ModelConfig[]
  providers?: readonly ProviderConfig[] | undefined
  virtualModels?: readonly VirtualModelConfig[] | undefined
  passthrough?: boolean | undefined
  timeouts?: { firstByte?: string | undefined; idle?: string | undefined } | undefined
}
