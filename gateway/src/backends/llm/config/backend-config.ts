import {
  enumeration,
  exactlyOne,
  type Infer,
  list,
  map,
  name,
  object,
  optional,
  type Schema,
  withFields,
} from '../../../schema/dsl.ts'
import { backendPolicyFields } from '../../../upstream/config.ts'
import { responseCacheSchema } from '../cache/config.ts'
import { maxModelLength } from '../models/name-pattern.ts'
import { providerNames } from '../providers/providers.ts'
import { type RouteType, routeTypes } from '../request/endpoints.ts'
import {
  bodyFields,
  finalTransformationSchema,
  overrideFields,
  sharedObjectsSchema,
  tokenizeSchema,
  transformationSchema,
} from './model-settings.ts'

const { backendAuth, backendTLS, backendTunnel, tcp, health, requestHeaderModifier } = backendPolicyFields

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
  defaults: bodyFields.defaults,
  overrides: bodyFields.overrides,
  transformations: optional(transformationSchema),
  finalTransformations: optional(finalTransformationSchema),
  prompts: bodyFields.prompts,
  promptCaching: bodyFields.promptCaching,
  cache: optional(responseCacheSchema),
  sharedObjects: optional(sharedObjectsSchema),
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
      name(
        { doc: 'Model sent upstream in place of the model in the request.', example: 'gpt-4o-mini' },
        { max: maxModelLength },
      ),
    ),
  },
  { doc: 'Settings of the provider.' },
)

/** `provider` of an `ai` backend. */
export const llmProviderSchema = exactlyOne(
  Object.fromEntries(
    [...providerNames].map(([name, { fields = {} }]) => [name, withFields(providerSettings, fields)]),
  ),
  {},
  { doc: 'The provider of the models.', example: { openAI: { model: 'gpt-4o-mini' } } },
)

/** Name and address of a provider of an `ai` backend. */
export const llmAddressFields = {
  name: optional(
    name(
      { doc: 'Name in logs and metrics.', default: 'the model, or the provider kind' },
      { max: maxModelLength },
    ),
  ),
  ...overrideFields,
}

const entryFields = {
  ...llmAddressFields,
  tokenize: optional(tokenizeSchema),
  policies: optional(
    object(
      {
        ai: optional(llmPolicySchema),
        backendAuth,
        backendTLS,
        backendTunnel,
        tcp,
        health,
        requestHeaderModifier,
      },
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
