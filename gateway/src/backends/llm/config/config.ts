import {
  anyOfShapes,
  boolean,
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
  port,
  type Schema,
  string,
} from '../../../schema/dsl.ts'
import { gatewayReferences } from '../../../schema/gateway-references.ts'
import { responseCacheSchema } from '../cache/config.ts'
import { maxModelLength } from '../models/name-pattern.ts'
import { customFields } from '../providers/custom.ts'
import { providerKinds } from '../providers/providers.ts'
import {
  modelNameSchema,
  modelSettingFields,
  paramsSchema,
  providerDefaultsSchema,
  sharedObjectsSchema,
} from './model-settings.ts'
import { type VirtualModelConfig, virtualModelSchema } from './virtual-models.ts'

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
  suggestions: providerKinds.map((one) => one.name),
})

const custom = object(
  { model: optional(modelNameSchema), ...customFields },
  { doc: 'A server that offers the listed APIs, at `params.baseUrl`.' },
)

const customProvider = object({ custom }, { doc: 'A server with known APIs.' })

const concurrency = object(
  {
    max: integer(
      { doc: 'Most requests to the model at the same time, in all data planes of the process.', example: 20 },
      { min: 1, max: 1_000_000 },
    ),
    queue: optional(
      integer(
        { doc: 'Most requests that wait. Further ones are refused with 503 `model_busy`.', default: 0 },
        { min: 0, max: 100_000 },
      ),
    ),
    timeout: optional(duration({ doc: 'Longest wait of a request.', default: '5s' })),
  },
  {
    doc: 'Limits concurrent requests to the model. A failover tries targets with a free place first.',
    advanced: true,
  },
)

export type ConcurrencyConfig = Infer<typeof concurrency>

const modelFields = {
  name: name(
    {
      doc: 'Model name in client requests: exact, `*`, `prefix*` or `*suffix`. The pattern with the most literal characters wins, then the first one.',
      example: 'gpt-4o',
    },
    { max: maxModelLength },
  ),
  id: optional(
    name({ doc: 'Identity of this entry in the config API.', default: 'the name', advanced: true }),
  ),
  provider: anyOfShapes(
    [
      providerKind,
      exactlyOne(
        { reference: name({ doc: 'Name of an entry of `llm.providers`.' }), custom },
        {},
        { doc: 'Shared settings, or a server with known APIs.' },
      ),
    ],
    {
      doc: 'Provider of the model: a provider kind, `{reference: name}` for an entry of `llm.providers`, or `{custom: {formats}}`.',
    },
  ),
  params: optional(paramsSchema),
  ...modelSettingFields,
  cache: optional(responseCacheSchema),
  sharedObjects: optional(sharedObjectsSchema),
  passthrough: optional(
    enumeration(['detect', 'opaque'], {
      doc: 'Forwards requests to this model unchanged but for its name, in the API of the provider, also at paths of unknown calls. `detect` counts usage, `opaque` counts nothing. Guards and changes of requests do not apply.',
      advanced: true,
    }),
  ),
  labels: optional(
    map(name({ doc: 'Value of the label.' }), {
      doc: 'Labels of the model, such as the region of its servers, for `requiredLabels` of virtual models.',
      example: { region: 'eu' },
    }),
  ),
  concurrency: optional(concurrency),
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
    provider: anyOfShapes([providerKind, customProvider], {
      doc: 'A provider kind, or `{custom: {formats}}`.',
    }),
    params: optional(paramsSchema),
    defaults: optional(providerDefaultsSchema),
  },
  { doc: 'Provider settings shared by the models that reference them.' },
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
  virtualModels: optional(list(virtualModelSchema, { doc: 'Model names with several targets.' })),
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

/** `llmFields` with schemas for the policies of models. */
export function guardedLlmFields<G, A>({
  guardrails,
  authorization,
}: {
  guardrails: Schema<G>
  authorization: Schema<A>
}) {
  const policies = { guardrails: optional(guardrails), authorization: optional(authorization) }
  return { ...llmFields, models: list(object({ ...modelFields, ...policies }, modelMeta), modelsMeta) }
}

export type LlmParams = Infer<typeof paramsSchema>
export type ModelConfig = Infer<typeof model> & {
  /** Opaque to this backend, which only associates them with models. */
  guardrails?: object | undefined
  /** As `guardrails`. */
  authorization?: object | undefined
}
export type ProviderConfig = Infer<typeof provider>

/** The fields of the `llm` section that this backend reads. */
export type LlmConfig = {
  port?: number | undefined
  gateways?: string | readonly string[] | undefined
  models: readonly ModelConfig[]
  providers?: readonly ProviderConfig[] | undefined
  virtualModels?: readonly VirtualModelConfig[] | undefined
  passthrough?: boolean | undefined
  timeouts?: { firstByte?: string | undefined; idle?: string | undefined } | undefined
  /** Opaque to this backend: guards of all models. */
  guardrails?: object | undefined
  policies?: { readonly guardrails?: object | undefined } | undefined
}
