import { type Infer, name, object, optional, type Schema } from '../../../../schema/dsl.ts'
import type { BodyChanges, Provider, ProviderCall, ProviderKind, ProviderPaths } from '../provider.ts'
import {
  authorizeGoogle,
  contentPaths,
  googleQuery,
  modelSegment,
  namesOtherGoogleModel,
} from './google-request.ts'

/** `vertex` of a provider. */
const fields = {
  projectId: name({ doc: 'Google Cloud project.', example: 'my-project' }),
  region: optional(
    name({
      doc: 'Region of Vertex AI: `global`, the multi-regions `us` and `eu`, or a region.',
      example: 'us-central1',
      default: 'global',
    }),
  ),
} satisfies Record<string, Schema>

const settingsSchema = object(fields, { doc: 'Project of Google Cloud.' })

type VertexSettings = Infer<typeof settingsSchema>

/** The settings as keys of `llm.models[].params`. */
export const vertexParams = {
  vertexProject: optional(fields.projectId),
  vertexRegion: fields.region,
} satisfies Record<string, Schema>

/** Vertex AI. https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest */
export const vertexKind: ProviderKind = {
  name: 'vertex',
  fields,
  params: { projectId: 'vertexProject', region: 'vertexRegion' },
  required: ['projectId'],
  ambientAuth: { gcp: {} },
  check({ projectId, region = 'global' }: VertexSettings, report) {
    if (!/^[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?$/i.test(projectId))
      report('projectId', 'must be the id or the number of a Google Cloud project')
    if (!/^[a-z]+(?:-[a-z]+\d*)*$/.test(region))
      report('region', 'must be global, us, eu or a region such as us-central1')
  },
  configure({ projectId, region = 'global' }: VertexSettings): Provider {
    const location = `/v1/projects/${projectId}/locations/${region}`
    return {
      name: 'vertex',
      address: `https://${hostOf(region)}`,
      paths: {},
      pathsFor: (call) => pathsOf(call, location),
      passthroughPrefix: location,
      namesOtherModel: namesOtherGoogleModel,
      editQuery: googleQuery,
      changesFor,
      authorize: authorizeGoogle,
    }
  },
}

function hostOf(region: string): string {
  if (region === 'global') return 'aiplatform.googleapis.com'
  if (region === 'us' || region === 'eu') return `aiplatform.${region}.rep.googleapis.com`
  return `${region}-aiplatform.googleapis.com`
}

function pathsOf({ model, streaming }: ProviderCall, location: string): ProviderPaths {
  const claude = claudeModel(model)
  if (claude !== undefined) {
    const segment = modelSegment(claude)
    return segment === undefined
      ? {}
      : claudePaths(`${location}/publishers/anthropic/models`, segment, streaming)
  }
  const google = googleModel(model)
  const segment = google === undefined ? undefined : modelSegment(google)
  if (segment === undefined) return { chat: `${location}/endpoints/openapi/chat/completions` }
  const path = `${location}/publishers/google/models/${segment}`
  return isEmbedding(segment) ? { predict: `${path}:predict` } : contentPaths(path, streaming)
}

function claudePaths(models: string, segment: string, streaming: boolean): ProviderPaths {
  return {
    messages: `${models}/${segment}:${streaming ? 'streamRawPredict' : 'rawPredict'}`,
    count_tokens: `${models}/count-tokens:rawPredict`,
  }
}

/** Name of a model of Google; undefined for models of other publishers, whose names contain a slash. */
function googleModel(model: string): string | undefined {
  const name =
    afterPrefix(model, 'publishers/google/models/') ??
    afterPrefix(model, 'google/') ??
    afterPrefix(model, 'models/')
  return name ?? (model.includes('/') ? undefined : model)
}

/** https://cloud.google.com/vertex-ai/generative-ai/docs/embeddings */
function isEmbedding(name: string): boolean {
  return /embedding/.test(name)
}

const anthropicVersion = '"vertex-2023-10-16"'

const messagesChanges: BodyChanges = {
  set: new Map([['anthropic_version', anthropicVersion]]),
  // The path has the model. The field of an earlier form of structured output is refused.
  remove: new Set(['model', 'output_format']),
}

const none: ReadonlySet<string> = new Set()

const changesFor: NonNullable<Provider['changesFor']> = (endpoint, { model }) => {
  if (endpoint === 'messages') return messagesChanges
  if (endpoint === 'count_tokens') {
    const name = JSON.stringify(claudeModel(model) ?? model)
    return {
      set: new Map([
        ['model', name],
        ['anthropic_version', anthropicVersion],
      ]),
      remove: none,
    }
  }
  return undefined
}

/** Name of a model of Anthropic in Vertex AI, whose versions follow `@`; undefined for other models. */
function claudeModel(model: string): string | undefined {
  const name = afterPrefix(model, 'publishers/anthropic/models/') ?? afterPrefix(model, 'anthropic/') ?? model
  if (name === model && !model.startsWith('claude-')) return undefined
  return name.replace(/-(\d{8})$/, '@$1')
}

/** The text after a prefix of its last segments. */
function afterPrefix(model: string, prefix: string): string | undefined {
  const start = model.indexOf(prefix)
  const isSegment = start === 0 || (start > 0 && model[start - 1] === '/')
  return isSegment ? model.slice(start + prefix.length) : undefined
}
