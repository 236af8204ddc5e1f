import { anthropic } from './anthropic.ts'
import { echo } from './echo/echo.ts'
import { openai } from './openai.ts'
import { openAiCompatible } from './openai-compatible.ts'
import type { Provider } from './provider.ts'

/** All provider kinds. */
export const providers: readonly Provider[] = [
  openai,
  anthropic,
  echo,
  openAiCompatible({ name: 'custom', address: undefined }),
  openAiCompatible({ name: 'cerebras', address: 'https://api.cerebras.ai/v1' }),
  openAiCompatible({ name: 'baseten', address: 'https://inference.baseten.co/v1' }),
  openAiCompatible({ name: 'cohere', address: 'https://api.cohere.ai/compatibility/v1' }),
  openAiCompatible({ name: 'deepinfra', address: 'https://api.deepinfra.com/v1/openai' }),
  openAiCompatible({ name: 'deepseek', address: 'https://api.deepseek.com/v1' }),
  openAiCompatible({ name: 'fireworks', address: 'https://api.fireworks.ai/inference/v1' }),
  openAiCompatible({ name: 'gemini', address: 'https://generativelanguage.googleapis.com/v1beta/openai' }),
  openAiCompatible({ name: 'groq', address: 'https://api.groq.com/openai/v1' }),
  openAiCompatible({ name: 'huggingface', address: 'https://router.huggingface.co/v1' }),
  openAiCompatible({ name: 'mistral', address: 'https://api.mistral.ai/v1' }),
  openAiCompatible({ name: 'ollama', address: 'http://localhost:11434/v1' }),
  openAiCompatible({ name: 'openrouter', address: 'https://openrouter.ai/api/v1' }),
  openAiCompatible({ name: 'togetherai', address: 'https://api.together.xyz/v1' }),
  openAiCompatible({ name: 'xai', address: 'https://api.x.ai/v1' }),
]

/** Alternative spellings in existing configurations. */
const aliases: ReadonlyMap<string, string> = new Map([['openAI', 'openai']])

/** All names that `findProvider` accepts. */
export const providerNames: readonly string[] = [...providers.map(({ name }) => name), ...aliases.keys()]

/** The provider kind by name or alias. */
export function findProvider(name: string): Provider | undefined {
  const canonical = aliases.get(name) ?? name
  return providers.find((provider) => provider.name === canonical)
}
