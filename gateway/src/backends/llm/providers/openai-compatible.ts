import { bearer, type Provider } from './provider.ts'

/** Paths every server of OpenAI's API shares; its base address ends in the version, `/v1` as a rule. */
export const openAiPaths: Provider['paths'] = {
  chat: '/chat/completions',
  completions: '/completions',
  embeddings: '/embeddings',
  responses: '/responses',
}

/** A service that speaks OpenAI's API at another address. `address` undefined: it is the user's to give. */
export function openAiCompatible({ name, address }: { name: string; address: string | undefined }): Provider {
  return { name, address, paths: openAiPaths, authorize: bearer }
}
