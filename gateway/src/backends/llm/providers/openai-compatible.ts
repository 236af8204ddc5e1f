import { bearer, type Provider } from './provider.ts'

/** Paths of servers with OpenAI's API, relative to a base address that ends in a version such as `/v1`. */
export const openAiPaths: Provider['paths'] = {
  chat: '/chat/completions',
  completions: '/completions',
  embeddings: '/embeddings',
  responses: '/responses',
}

/** A service with OpenAI's API. `address` is undefined if the configuration must set it. */
export function openAiCompatible({ name, address }: { name: string; address: string | undefined }): Provider {
  return { name, address, paths: openAiPaths, authorize: bearer }
}
