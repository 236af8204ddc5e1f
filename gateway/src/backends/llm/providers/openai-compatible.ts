import { bearer, type Provider, type ProviderPaths } from './provider.ts'

/** Paths of servers with OpenAI's API, relative to a base address that ends in a version such as `/v1`. */
export const openAiPaths = {
  chat: '/chat/completions',
  completions: '/completions',
  embeddings: '/embeddings',
  responses: '/responses',
} satisfies ProviderPaths

/** A service with OpenAI's API. `address` is undefined if the configuration must set it. */
export type CompatibleService = {
  name: string
  address: string | undefined
  /** Default: all paths of OpenAI's API. */
  paths?: ProviderPaths
}

export function openAiCompatible({ name, address, paths = openAiPaths }: CompatibleService): Provider {
  return { name, address, paths, authorize: bearer }
}
