import { openAiCompatible, openAiPaths } from './openai-compatible.ts'
import { fixedKind, type ProviderKind, type ProviderPaths } from './provider.ts'

const { responses, ...withoutResponses } = openAiPaths
const { embeddings, ...chatOnly } = withoutResponses
const chatAndResponses: ProviderPaths = { ...chatOnly, responses }

type Preset = { address: string; paths: ProviderPaths }

/** Services with OpenAI's API: the calls that each documents. Others are served by translation. */
const presets: Readonly<Record<string, Preset>> = {
  cerebras: { address: 'https://api.cerebras.ai/v1', paths: chatOnly },
  baseten: { address: 'https://inference.baseten.co/v1', paths: { ...chatOnly, messages: '/messages' } },
  cohere: { address: 'https://api.cohere.ai/compatibility/v1', paths: withoutResponses },
  deepinfra: {
    address: 'https://api.deepinfra.com/v1/openai',
    paths: { ...withoutResponses, messages: { absolute: '/anthropic/v1/messages' } },
  },
  deepseek: {
    address: 'https://api.deepseek.com/v1',
    paths: { ...chatOnly, messages: { absolute: '/anthropic/v1/messages' } },
  },
  fireworks: {
    address: 'https://api.fireworks.ai/inference/v1',
    paths: { ...openAiPaths, messages: '/messages' },
  },
  groq: { address: 'https://api.groq.com/openai/v1', paths: chatAndResponses },
  huggingface: { address: 'https://router.huggingface.co/v1', paths: chatAndResponses },
  mistral: { address: 'https://api.mistral.ai/v1', paths: withoutResponses },
  ollama: { address: 'http://localhost:11434/v1', paths: openAiPaths },
  openrouter: {
    address: 'https://openrouter.ai/api/v1',
    paths: { ...openAiPaths, messages: '/messages' },
  },
  togetherai: { address: 'https://api.together.xyz/v1', paths: withoutResponses },
  xai: { address: 'https://api.x.ai/v1', paths: chatAndResponses },
}

/** The kinds of all presets. */
export const presetKinds: readonly ProviderKind[] = Object.entries(presets).map(([name, preset]) =>
  fixedKind(openAiCompatible({ name, ...preset })),
)
