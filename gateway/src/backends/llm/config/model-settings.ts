import {
  boolean,
  cel,
  enumeration,
  hostPort,
  type Infer,
  jsonObject,
  list,
  map,
  name,
  object,
  optional,
  type Schema,
  secretSource,
  string,
  url,
} from '../../../schema/dsl.ts'
import { healthSchema } from '../../../upstream/config.ts'
import { backendTlsSchema } from '../../../upstream/connection-config.ts'
import { backendAuthSchema } from '../../../upstream/credentials/config.ts'
import { headerModifierOf } from '../../../upstream/header-modifier.ts'
import { backendTunnelSchema } from '../../../upstream/tunnel/config.ts'
import { maxModelLength } from '../models/name-pattern.ts'
import { azureParams } from '../providers/azure.ts'
import { bedrockParams } from '../providers/bedrock/bedrock.ts'
import { vertexParams } from '../providers/google/vertex.ts'
import { promptCachingSchema, promptsSchema } from '../rewrite/config.ts'
import { objectKinds } from '../stored/object-kinds.ts'

// Settings that a model and the shared provider of several models have.

/** CEL variables of conditions that select the target of a virtual model. */
export const routingRoots = [
  'now',
  'request',
  'request.body',
  'source',
  'jwt',
  'basicAuth',
  'apiKey',
  'llmRequest',
  'llm',
] as const

/** Address of a provider in parts, as on an `ai` backend. */
export const overrideFields = {
  hostOverride: optional(
    hostPort({
      doc: 'Server address in place of the provider’s own. TLS is used at port 443 and with TLS settings.',
      example: 'localhost:11434',
    }),
  ),
  pathOverride: optional(
    string({ doc: 'Path of every call in place of the provider’s paths.', example: '/api/v2/chat' }),
  ),
  pathPrefix: optional(string({ doc: 'Path prefix in place of the provider’s own, such as `/v1`.' })),
}

/** `tokenize` of a provider. */
export const tokenizeSchema = boolean({
  doc: 'Accepted for compatibility: token limits estimate the tokens of each request before it is forwarded, with either value.',
  advanced: true,
})

/** Model name at the provider. */
export const modelNameSchema = name(
  {
    doc: 'Model name sent upstream in place of the name in the request.',
    example: 'gpt-4o-mini',
  },
  { max: maxModelLength },
)

/** `params` of a model or a provider. */
export const paramsSchema = object(
  {
    model: optional(modelNameSchema),
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
    ...overrideFields,
    tokenize: optional(tokenizeSchema),
    ...azureParams,
    ...vertexParams,
    ...bedrockParams,
  },
  { doc: 'Address, credential and model of requests to the provider.' },
)

/** `sharedObjects` of a model, and of `policies.ai`. */
export const sharedObjectsSchema = list(
  enumeration(objectKinds, {
    doc: 'Kind of objects: `conversations`, `prompts`, `vectorStores`, `containers`, `items` of responses and audio of chat completions, `files` (also in buckets, `gs:` and `s3:`), `skills`, or `caches` of Google.',
  }),
  {
    doc: 'Objects in the account of the provider that requests may name by id, although the gateway does not know their owner: all clients of the model reach those of all others.',
    default: 'none',
    advanced: true,
    example: ['vectorStores'],
  },
)

/** Expressions of fields of the body in the API of the client. */
export const transformationSchema = map(
  cel({ doc: 'Expression of the value.', reveals: true }, routingRoots),
  {
    doc: 'Request body fields computed by expressions over `llmRequest`; they replace those of the client. A field whose expression fails is removed. `model` changes the name that is requested.',
    example: { model: 'llmRequest.model.stripPrefix("openai/")' },
  },
)

/** Expressions of fields of the body in the API of the provider. */
export const finalTransformationSchema = map(
  cel({ doc: 'Expression of the value.', reveals: true }, routingRoots),
  {
    doc: 'Fields of the body for the provider, computed by expressions over that body (`llmRequest`) after translation into the API of the provider. A field whose expression fails is removed.',
    example: { metadata: '{"user_id": jwt.sub}' },
  },
)

/** Changes of request bodies. */
export const bodyFields = {
  defaults: optional(
    jsonObject({
      doc: 'Request body fields that are set if absent. A name that begins with a slash is a JSON Pointer to a nested field.',
      example: { temperature: 0.2 },
    }),
  ),
  overrides: optional(
    jsonObject({
      doc: 'Request body fields that replace those of the client. A name that begins with a slash is a JSON Pointer to a nested field.',
      example: { store: false, '/metadata/team': 'search' },
    }),
  ),
  transformation: optional(transformationSchema),
  finalTransformation: optional(finalTransformationSchema),
  prompts: optional(promptsSchema),
  promptCaching: optional(promptCachingSchema),
} satisfies Record<string, Schema>

/** Connections, credentials, headers and health of a provider. */
const connectionFields = {
  auth: optional(backendAuthSchema),
  requestHeaders: optional(headerModifierOf('Changes of header fields of requests to the provider')),
  responseHeaders: optional(headerModifierOf('Changes of header fields of responses of the provider')),
  tls: optional(backendTlsSchema),
  backendTLS: optional(backendTlsSchema),
  backendTunnel: optional(backendTunnelSchema),
  health: optional(healthSchema),
} satisfies Record<string, Schema>

/** Settings of a model that may be shared. */
export const modelSettingFields = { ...bodyFields, ...connectionFields }

/** `defaults` of a provider: settings of the models that reference it. */
export const providerDefaultsSchema = object(modelSettingFields, {
  doc: 'Settings of the models that reference the provider. Settings of a model take precedence; body fields are merged.',
})

export type ModelSettings = Infer<typeof providerDefaultsSchema>
