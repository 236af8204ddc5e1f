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

function isRouteType(text: string): text is RouteType {
  return text in routeTypes
}

export const llmPolicyFields = {
  routes: optional(
    map(enumeration([firstType, ...otherTypes], { doc: 'What such paths ask for.' }), {
      doc: 'What a path asks for, by the end of the path; the longest end wins and `*` is for all others. Without it every path is a chat completion.',
      example: { '/v1/messages': 'messages', '/v1/chat/completions': 'completions', '*': 'passthrough' },
    }),
  ),
  defaults: optional(
    jsonObject({
      doc: 'Fields of the request body that are set where the client left them out.',
      example: { temperature: 0.2 },
    }),
  ),
  overrides: optional(
    jsonObject({
      doc: 'Fields of the request body that are set whatever the client sent.',
      example: { store: false },
    }),
  ),
  modelAliases: optional(
    map(name({ doc: 'Model that is meant.' }), {
      doc: 'Other names of models: exact, `*`, `prefix*` or `*suffix`. A model of the provider comes before them.',
      example: { fast: 'gpt-4o-mini' },
    }),
  ),
}

export const llmPolicyMeta = { doc: 'How requests to LLM providers are read, and what is changed in them.' }

/** `policies.ai`: how requests to LLM providers are read, and what is changed in them. */
export const llmPolicySchema = object(llmPolicyFields, llmPolicyMeta)

export type LlmPolicyConfig = Infer<typeof llmPolicySchema>

const providerSettings = object(
  {
    model: optional(
      name({ doc: 'Model sent upstream in place of the one the client sent.', example: 'gpt-4o-mini' }),
    ),
  },
  { doc: 'A provider, and what it is asked for.' },
)

const providerChoice = exactlyOne(
  Object.fromEntries(providerNames.map((kind) => [kind, providerSettings])),
  {},
  { doc: 'Who serves the requests.', example: { openAI: { model: 'gpt-4o-mini' } } },
)

const entryFields = {
  name: optional(name({ doc: 'Name in logs and metrics.', default: 'the model, or the kind of provider' })),
  hostOverride: optional(
    hostPort({
      doc: 'Server to call in place of the provider’s own: over TLS at port 443 or with `backendTLS`, else without.',
      example: 'localhost:11434',
    }),
  ),
  pathOverride: optional(
    string({ doc: 'Path of every call in place of the provider’s own.', example: '/api/v2/chat' }),
  ),
  pathPrefix: optional(
    string({ doc: 'What stands before the paths of calls in place of the provider’s own, as `/v1`.' }),
  ),
  policies: optional(
    object(
      { ai: optional(llmPolicySchema), backendAuth, backendTLS, requestHeaderModifier },
      { doc: 'What holds for this provider, before what holds for the backend or route.' },
    ),
  ),
} satisfies Record<string, Schema>

const entry = object({ ...entryFields, provider: providerChoice }, { doc: 'A provider.' })

const group = object(
  { providers: list(entry, { doc: 'Providers that share the load.' }, { min: 1 }) },
  { doc: 'Providers of the same rank.' },
)

/** `ai` of a backend: an LLM provider, or groups of them that stand in for each other. */
export const llmBackendSchema = exactlyOne(
  {
    provider: providerChoice,
    groups: list(
      group,
      { doc: 'Groups of providers, best first: the next one serves what the ones before fail to.' },
      { min: 1 },
    ),
  },
  entryFields,
  { doc: 'Requests to LLM providers: credentials, translation between APIs, counts of tokens.' },
)

export type LlmBackendConfig = Infer<typeof llmBackendSchema>
export type LlmProviderEntry = Infer<typeof entry>
