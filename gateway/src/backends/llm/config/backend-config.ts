import {
  enumeration,
  exactlyOne,
  hostPort,
  type Infer,
  jsonObject,
  list,
  map,
  name,
  object,
  optional,
  type Schema,
  string,
} from '../../../schema/dsl.ts'
import { backendPolicyFields } from '../../../upstream/config.ts'
import { providerNames } from '../providers/providers.ts'
import { type RouteType, routeTypes } from '../request/endpoints.ts'

const { backendAuth, backendTLS, requestHeaderModifier } = backendPolicyFields

const [firstType = 'completions', ...otherTypes] = Object.keys(routeTypes).filter(isRouteType)

/** Names of API calls. */
export const routeTypeNames: readonly [RouteType, ...RouteType[]] = [firstType, ...otherTypes]

function isRouteType(text: string): text is RouteType {
  return Object.hasOwn(routeTypes, text)
}

export const llmPolicyFields = {
  routes: optional(
    map(enumeration(routeTypeNames, { doc: 'API call at these paths.' }), {
      doc: 'API calls by path suffix. The longest matching suffix wins, and `*` matches all other paths. Without it every path is a chat completion.',
      example: { '/v1/messages': 'messages', '/v1/chat/completions': 'completions', '*': 'passthrough' },
    }),
  ),
  defaults: optional(
    jsonObject({
      doc: 'Request body fields that are set if absent.',
      example: { temperature: 0.2 },
    }),
  ),
  overrides: optional(
    jsonObject({
      doc: 'Request body fields that replace those of the client.',
      example: { store: false },
    }),
  ),
  modelAliases: optional(
    map(name({ doc: 'Model name at the provider.' }), {
      doc: 'Model aliases: exact, `*`, `prefix*` or `*suffix`. `model` of the provider takes precedence.',
      example: { fast: 'gpt-4o-mini' },
    }),
  ),
}

export const llmPolicyMeta = { doc: 'Reading and modification of requests to LLM providers.' }

/** `policies.ai`. */
export const llmPolicySchema = object(llmPolicyFields, llmPolicyMeta)

export type LlmPolicyConfig = Infer<typeof llmPolicySchema>

const providerSettings = object(
  {
    model: optional(
      name({ doc: 'Model sent upstream in place of the model in the request.', example: 'gpt-4o-mini' }),
    ),
  },
  { doc: 'Settings of the provider.' },
)

/** `provider` of an `ai` backend. */
export const llmProviderSchema = exactlyOne(
  Object.fromEntries(providerNames.map((kind) => [kind, providerSettings])),
  {},
  { doc: 'The provider of the models.', example: { openAI: { model: 'gpt-4o-mini' } } },
)

/** Name and address of a provider of an `ai` backend. */
export const llmAddressFields = {
  name: optional(name({ doc: 'Name in logs and metrics.', default: 'the model, or the provider kind' })),
  hostOverride: optional(
    hostPort({
      doc: 'Server address in place of the provider’s own. TLS is used at port 443 and with `backendTLS`.',
      example: 'localhost:11434',
    }),
  ),
  pathOverride: optional(
    string({ doc: 'Path of every call in place of the provider’s paths.', example: '/api/v2/chat' }),
  ),
  pathPrefix: optional(string({ doc: 'Path prefix in place of the provider’s own, such as `/v1`.' })),
}

const entryFields = {
  ...llmAddressFields,
  policies: optional(
    object(
      { ai: optional(llmPolicySchema), backendAuth, backendTLS, requestHeaderModifier },
      { doc: 'Policies of this provider. They take precedence over those of the backend and the route.' },
    ),
  ),
} satisfies Record<string, Schema>

const entry = object({ ...entryFields, provider: llmProviderSchema }, { doc: 'A provider.' })

const group = object(
  { providers: list(entry, { doc: 'Providers that share the load.' }, { min: 1 }) },
  { doc: 'Providers of the same priority.' },
)

/** `ai` of a backend: an LLM provider, or groups of providers with failover. */
export const llmBackendSchema = exactlyOne(
  {
    provider: llmProviderSchema,
    groups: list(
      group,
      { doc: 'Groups of providers by priority, highest first. Failed requests go to the next group.' },
      { min: 1 },
    ),
  },
  entryFields,
  { doc: 'Requests to LLM providers: credentials, translation between APIs, token counts.' },
)

export type LlmBackendConfig = Infer<typeof llmBackendSchema>
export type LlmProviderEntry = Infer<typeof entry>
