import { bearer, type Provider, type ProviderPaths } from './provider.ts'

/** Paths of servers with OpenAI's API, relative to a base address that ends in a version such as `/v1`. */
export const openAiPaths = {
  chat: '/chat/completions',
  completions: '/completions',
  embeddings: '/embeddings',
  responses: '/responses',
} satisfies ProviderPaths

/** Paths of calls about images, audio and moderation, likewise. Fewer servers have them. */
export const mediaPaths = {
  moderations: '/moderations',
  images: '/images/generations',
  image_edits: '/images/edits',
  image_variations: '/images/variations',
  speech: '/audio/speech',
  transcriptions: '/audio/transcriptions',
  translations: '/audio/translations',
} satisfies ProviderPaths

/** Path of realtime, likewise. */
export const realtimePaths = { realtime: '/realtime' } satisfies ProviderPaths

/** Paths of rerank, likewise. Servers other than Cohere accept requests of both its versions. */
export const rerankPaths = { rerank: '/rerank', rerank_v2: '/rerank' } satisfies ProviderPaths

/** Paths of files and batches, likewise. */
export const batchPaths = { files: '/files', batches: '/batches' } satisfies ProviderPaths

/** Path of uploads in parts, likewise. */
export const uploadPaths = { uploads: '/uploads' } satisfies ProviderPaths

/** All paths of servers of unknown kind. */
export const allPaths = {
  ...openAiPaths,
  ...mediaPaths,
  ...rerankPaths,
  ...realtimePaths,
  ...batchPaths,
  ...uploadPaths,
} satisfies ProviderPaths

/** A service with OpenAI's API. `address` is undefined if the configuration must set it. */
export type CompatibleService = {
  name: string
  address: string | undefined
  /** Default: all paths. */
  paths?: ProviderPaths
}

export function openAiCompatible({ name, address, paths = allPaths }: CompatibleService): Provider {
  return { name, address, paths, authorize: bearer }
}
