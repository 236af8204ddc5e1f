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
import { providers } from '../providers/providers.ts'

/** CEL variables of conditions that select the target of a virtual model. */
export const routingRoots = [
  'now',
  'request',
  'source',
  'jwt',
  'basicAuth',
  'apiKey',
  'llmRequest',
  'llm',
] as const

const modelName = name({
  doc: 'Model name sent upstream in place of the name in the request.',
  example: 'gpt-4o-mini',
})

const params = object(
  {
    model: optional(modelName),
    apiKey: optional(
      secretSource({
        doc: 'Credential of the provider. Without it, the client’s credential is forwarded unless a gateway policy consumed it.',
        example: '$OPENAI_API_KEY',
      }),
    ),
    baseUrl: optional(
      url({
        doc: "Base address of the provider, path included. Without a path, the provider's default path is used.",
        example: 'http://localhost:11434/v1',
        default: "the provider's own address",
      }),
    ),
  },
  { doc: 'Address, credential and model of requests to the provider.' },
)

const defaults = jsonObject({
  doc: 'Request body fields that are set if absent.',
  example: { temperature: 0.2 },
})

const headerMatch = object(
  {
    name: name({ doc: 'Name of a request header, in any case.', example: 'x-team' }),
    value: exactlyOne(
      {
        exact: string({ doc: 'The whole value.' }),
        regex: string({ doc: 'RE2 pattern that matches any part of the value; anchor it with ^ and $.' }),
      },
      {},
      { doc: 'Required value.' },
    ),
  },
  { doc: 'A required header of the request.' },
)

const providerKind = name({
  doc: 'Kind of provider.',
  example: 'openai',
  suggestions: providers.map((one) => one.name),
})

const modelFields = {
  name: name({
    doc: 'Model name in client requests: exact, `*`, `prefix*` or `*suffix`. The pattern with the most literal characters wins, then the first one.',
    example: 'gpt-4o',
  }),
  id: optional(
    name({ doc: 'Identity of this entry in the config API.', default: 'the name', advanced: true }),
  ),
  provider: anyOfShapes(
    [
      providerKind,
      object(
        { reference: name({ doc: 'Name of an entry of `llm.providers`.' }) },
        { doc: 'Shared settings.' },
      ),
    ],
    {
      doc: 'Provider of the model: a provider kind, or `{reference: name}` for an entry of `llm.providers`.',
    },
  ),
  params: optional(params),
  defaults: optional(defaults),
  overrides: optional(
    jsonObject({
      doc: 'Request body fields that replace those of the client.',
      example: { store: false },
    }),
  ),
  visibility: optional(
    enumeration(['public', 'internal'], {
      doc: '`internal` models are available through virtual models only, and are not listed.',
      default: 'public',
    }),
  ),
  matches: optional(
    list(
      object(
        { headers: list(headerMatch, { doc: 'Required headers: all of them must match.' }) },
        { doc: 'One alternative.' },
      ),
      {
        doc: 'Conditions on requests, in addition to the name. At least one alternative must match.',
        default: 'all',
      },
    ),
  ),
} satisfies Record<string, Schema>

const modelMeta = { doc: 'A model and its provider.' }

const model = object(modelFields, modelMeta)

const provider = object(
  {
    name: name({ doc: 'Name for references in models.' }),
    provider: providerKind,
    params: optional(params),
    defaults: optional(defaults),
  },
  { doc: 'Provider settings shared by the models that reference them.' },
)

const target = name({
  doc: 'Model name, matched against `llm.models` like the name in a request. Internal models are included.',
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
      },
      { doc: 'Distributes requests by weight.' },
    ),
    failover: object(
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
            doc: 'Targets by priority. A failed connection, a timeout, 5xx and 429 lead to the next target.',
          },
          { min: 1 },
        ),
      },
      { doc: 'Fails over to the next target within a request.' },
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
            doc: 'Conditions in order. The first true condition selects its target; an evaluation error counts as false.',
          },
          { min: 1 },
        ),
      },
      { doc: 'Selects the target by properties of the request.' },
    ),
  },
  {},
  { doc: 'Selection of the target.' },
)

const virtualModel = object(
  {
    name: name({
      doc: 'Exact model name in client requests. Takes precedence over `llm.models`.',
      example: 'fast',
    }),
    routing,
  },
  { doc: 'A model name with several targets.' },
)

const modelsMeta = { doc: 'Models available to clients.' }

/** The fields of `llm` except `policies`, which the composition of the section adds. */
export const llmFields = {
  port: optional(
    port({
      doc: 'Port of a separate LLM endpoint.',
      default: '4000 without gateways and without a gateway named default',
    }),
  ),
  gateways: optional(gatewayReferences),
  models: list(model, modelsMeta),
  providers: optional(list(provider, { doc: 'Provider settings shared by models.' })),
  virtualModels: optional(list(virtualModel, { doc: 'Model names with several targets.' })),
  passthrough: optional(
    boolean({
      doc: 'Forwards paths of unknown LLM calls, with the provider’s credential, to the model in the body or else to the model named `*`.',
      default: false,
      advanced: true,
    }),
  ),
  timeouts: optional(
    object(
      {
        firstByte: optional(duration({ doc: 'Longest wait for the response head.', default: '10m' })),
        idle: optional(duration({ doc: 'Longest pause within a response.', default: '5m' })),
      },
      { doc: 'Timeouts of requests to providers.', advanced: true },
    ),
  ),
} satisfies Record<string, Schema>

/** `llmFields` with a schema for the `guardrails` of models, which belong to a policy. */
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
  /** Opaque to this backend, which only associates them with models. */
  guardrails?: object | undefined
}
export type ProviderConfig = Infer<typeof provider>
export type VirtualModelConfig = Infer<typeof virtualModel>
export type RoutingConfig = VirtualModelConfig['routing']

/** The fields of the `llm` section that this backend reads. */
export type LlmConfig = {
  port?: number | undefined
  gateways?: string | readonly string[] | undefined
  models: readonly ModelConfig[]
  providers?: readonly ProviderConfig[] | undefined
  virtualModels?: readonly VirtualModelConfig[] | undefined
  passthrough?: boolean | undefined
  timeouts?: { firstByte?: string | undefined; idle?: string | undefined } | undefined
}
