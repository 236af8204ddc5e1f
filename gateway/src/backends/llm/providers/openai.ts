import { batchPaths, mediaPaths, openAiPaths, realtimePaths, uploadPaths } from './openai-compatible.ts'
import { bearer, type Provider, type ProviderPaths } from './provider.ts'

const paths: ProviderPaths = {
  ...openAiPaths,
  ...mediaPaths,
  ...realtimePaths,
  ...batchPaths,
  ...uploadPaths,
}
const pathsWithoutChat = withoutChat(paths)

/** https://platform.openai.com/docs/api-reference. With `params.baseUrl`, any server of the same API. */
export const openai: Provider = {
  name: 'openai',
  address: 'https://api.openai.com/v1',
  paths,
  pathsFor: ({ model }) => (isResponsesOnly(model) ? pathsWithoutChat : paths),
  renamesMaxTokens,
  authorize: bearer,
}

/**
 * Models that `/v1/chat/completions` refuses as "only supported in v1/responses": those of `ResponsesModel`
 * in the types of the `openai` package, and their versions.
 */
const responsesOnly: readonly RegExp[] = [
  // gpt-5-pro, gpt-5.2-pro-2025-12-11, o1-pro, o3-pro
  /^(?:gpt-5[\d.]*|o\d+)-pro(?:-|$)/,
  // gpt-5-codex, gpt-5.1-codex-max, codex-mini-latest
  /^(?:gpt-5[\d.]*-codex|codex-mini)(?:-|$)/,
  // o3-deep-research, o4-mini-deep-research
  /^o\d+(?:-mini)?-deep-research(?:-|$)/,
  /^computer-use-preview(?:-|$)/,
]

/** Whether the service has a model in the Responses API only. */
export function isResponsesOnly(model: string): boolean {
  return responsesOnly.some((pattern) => pattern.test(model))
}

/** The paths of a model that is only in the Responses API. */
export function withoutChat({ chat: _, completions: __, ...others }: ProviderPaths): ProviderPaths {
  return others
}

/** The o-series rejects `max_tokens`, and the gpt models accept the newer name. */
export function renamesMaxTokens(model: string): boolean {
  return model.startsWith('gpt-') || isReasoningSeries(model)
}

/** o1, o3-mini, o4-mini, ... */
function isReasoningSeries(model: string): boolean {
  const digit = model.charCodeAt(1)
  return model.startsWith('o') && digit >= 0x30 && digit <= 0x39
}
