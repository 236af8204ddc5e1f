import {
  enumeration,
  type Infer,
  list,
  name,
  object,
  optional,
  type Schema,
  string,
} from '../../../schema/dsl.ts'
import type { ClientEndpoint, Endpoint } from '../request/endpoints.ts'
import { allPaths, openAiCompatible } from './openai-compatible.ts'
import { bearer, type Provider, type ProviderKind, type ProviderPath } from './provider.ts'

/** Calls by the names of formats. */
const endpoints = {
  completions: 'chat',
  messages: 'messages',
  responses: 'responses',
  embeddings: 'embeddings',
  anthropicTokenCount: 'count_tokens',
  moderations: 'moderations',
  rerank: 'rerank',
  imageGenerations: 'images',
  imageEdits: 'image_edits',
  imageVariations: 'image_variations',
  audioSpeech: 'speech',
  audioTranscriptions: 'transcriptions',
  audioTranslations: 'translations',
  realtime: 'realtime',
  files: 'files',
  batches: 'batches',
  messageBatches: 'message_batches',
  anthropicFiles: 'anthropic_files',
  uploads: 'uploads',
} satisfies Record<string, ClientEndpoint>

type FormatEndpoint = (typeof endpoints)[keyof typeof endpoints]

const formatTypes = [
  ...(['completions', 'messages', 'responses', 'embeddings', 'anthropicTokenCount'] as const),
  ...(['moderations', 'rerank', 'imageGenerations', 'imageEdits', 'imageVariations'] as const),
  ...(['audioSpeech', 'audioTranscriptions', 'audioTranslations'] as const),
  'realtime',
  ...(['files', 'batches', 'messageBatches', 'anthropicFiles', 'uploads'] as const),
] as const

const defaultPaths: Readonly<Record<FormatEndpoint, string>> = {
  ...allPaths,
  messages: '/messages',
  count_tokens: '/messages/count_tokens',
  message_batches: '/messages/batches',
  anthropic_files: '/files',
}

const format = object(
  {
    type: enumeration(formatTypes, {
      doc: 'API of the call: chat completions, messages, responses, embeddings, token counting, moderations, rerank, images, audio, realtime, files or batches.',
    }),
    path: optional(
      string({
        doc: 'Path of the call from the root of the host.',
        example: '/anthropic/v1/messages',
        default: "the API's path below the base address",
      }),
    ),
  },
  { doc: 'A supported API.' },
)

/** `custom` of a provider. */
export const customFields = {
  formats: optional(
    list(
      format,
      {
        doc: 'APIs of the server. Requests of another API are translated to one of them.',
        default: 'all calls of OpenAI’s API',
      },
      { min: 1, max: 16 },
    ),
  ),
  providerOverride: optional(
    name({ doc: 'Name of the provider in metrics, logs and the model catalog.', default: 'custom' }),
  ),
} satisfies Record<string, Schema>

const settingsSchema = object(customFields, { doc: 'A server with known APIs.' })

export type CustomSettings = Infer<typeof settingsSchema>

/** A server with APIs that the configuration lists. */
export const customKind: ProviderKind = {
  name: 'custom',
  calls: Object.keys(defaultPaths),
  fields: customFields,
  check({ formats = [] }: CustomSettings, report) {
    const seen = new Set<string>()
    for (const [index, { type, path }] of formats.entries()) {
      const field = `formats[${index}]`
      if (seen.has(type)) report('formats', `${field}: duplicate type "${type}"`)
      seen.add(type)
      if (path === undefined) continue
      if (!/^\/[\x21-\x7e]*$/.test(path) || /[?#]/.test(path))
        report('formats', `${field}.path must start with a slash, without spaces, query and fragment`)
    }
  },
  configure({ formats, providerOverride = 'custom' }: CustomSettings): Provider {
    if (formats === undefined) return openAiCompatible({ name: providerOverride, address: undefined })
    const paths = formats.flatMap(({ type, path }): [Endpoint, ProviderPath][] => {
      const endpoint = endpoints[type]
      const chosen = path === undefined ? defaultPaths[endpoint] : { absolute: path }
      return endpoint === 'rerank'
        ? [
            [endpoint, chosen],
            ['rerank_v2', chosen],
          ]
        : [[endpoint, chosen]]
    })
    return { name: providerOverride, address: undefined, paths: Object.fromEntries(paths), authorize: bearer }
  },
}
