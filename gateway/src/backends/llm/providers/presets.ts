import {
  batchPaths,
  mediaPaths,
  openAiCompatible,
  openAiPaths,
  realtimePaths,
  rerankPaths,
} from './openai-compatible.ts'
import { fixedKind, type ProviderKind, type ProviderPaths } from './provider.ts'

const { responses, ...withoutResponses } = openAiPaths
const { embeddings, ...chatOnly } = withoutResponses
const chatAndResponses: ProviderPaths = { ...chatOnly, responses }
const { moderations, ...imagesAndAudio } = mediaPaths
const { images, image_edits, speech, transcriptions, translations } = mediaPaths

type Preset = { address: string; paths: ProviderPaths }

/** Services with OpenAI's API: the calls that each documents. Others are served by translation. */
const presets: Readonly<Record<string, Preset>> = {
  cerebras: { address: 'https://api.cerebras.ai/v1', paths: { ...chatOnly, ...batchPaths } },
  baseten: { address: 'https://inference.baseten.co/v1', paths: { ...chatOnly, messages: '/messages' } },
  cohere: {
    address: 'https://api.cohere.ai/compatibility/v1',
    paths: {
      ...withoutResponses,
      rerank: { absolute: '/v1/rerank' },
      rerank_v2: { absolute: '/v2/rerank' },
      embed: { absolute: '/v2/embed' },
      cohere_chat: { absolute: '/v2/chat' },
    },
  },
  deepinfra: {
    address: 'https://api.deepinfra.com/v1/openai',
    paths: {
      ...withoutResponses,
      ...imagesAndAudio,
      ...batchPaths,
      messages: { absolute: '/anthropic/v1/messages' },
    },
  },
  deepseek: {
    address: 'https://api.deepseek.com/v1',
    paths: { ...chatOnly, messages: { absolute: '/anthropic/v1/messages' } },
  },
  fireworks: {
    address: 'https://api.fireworks.ai/inference/v1',
    paths: { ...openAiPaths, messages: '/messages' },
  },
  groq: {
    address: 'https://api.groq.com/openai/v1',
    paths: { ...chatAndResponses, speech, transcriptions, translations, ...batchPaths },
  },
  huggingface: { address: 'https://router.huggingface.co/v1', paths: chatAndResponses },
  jina: { address: 'https://api.jina.ai/v1', paths: { embeddings, ...rerankPaths } },
  mistral: {
    address: 'https://api.mistral.ai/v1',
    paths: { ...withoutResponses, moderations, transcriptions },
  },
  ollama: { address: 'http://localhost:11434/v1', paths: openAiPaths },
  openrouter: {
    address: 'https://openrouter.ai/api/v1',
    paths: { ...openAiPaths, ...rerankPaths, messages: '/messages' },
  },
  togetherai: {
    address: 'https://api.together.xyz/v1',
    paths: { ...withoutResponses, ...rerankPaths, images, speech, transcriptions, translations },
  },
  xai: {
    address: 'https://api.x.ai/v1',
    paths: { ...chatAndResponses, ...realtimePaths, images, image_edits },
  },
}

/** The kinds of all presets. */
export const presetKinds: readonly ProviderKind[] = Object.entries(presets).map(([name, preset]) =>
  fixedKind(openAiCompatible({ name, ...preset })),
)
