import { batchPaths, mediaPaths, openAiPaths, realtimePaths } from './openai-compatible.ts'
import { bearer, type Provider } from './provider.ts'

/** https://platform.openai.com/docs/api-reference. With `params.baseUrl`, any server of the same API. */
export const openai: Provider = {
  name: 'openai',
  address: 'https://api.openai.com/v1',
  paths: { ...openAiPaths, ...mediaPaths, ...realtimePaths, ...batchPaths },
  renamesMaxTokens,
  authorize: bearer,
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
