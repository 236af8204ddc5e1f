import type { LlmApi } from '../../../pipeline/llm-message.ts'
import { converseContent } from './bedrock/converse.ts'
import { invokeContent } from './bedrock/invoke.ts'
import { chatContent } from './chat.ts'
import { cohereContent } from './cohere.ts'
import { completionsContent } from './completions.ts'
import type { ContentReader } from './content-reader.ts'
import { geminiContent } from './gemini.ts'
import {
  embedContent,
  imagesContent,
  moderationsContent,
  rerankContent,
  speechContent,
} from './input-texts.ts'
import { messagesContent } from './messages.ts'
import { responsesContent } from './responses/responses.ts'
import { transcriptionsContent } from './transcriptions.ts'

/** Content readers by client API. */
export const contentReaders: Readonly<Record<LlmApi, ContentReader>> = {
  chat: chatContent,
  completions: completionsContent,
  messages: messagesContent,
  responses: responsesContent,
  generate_content: geminiContent,
  converse: converseContent,
  cohere_chat: cohereContent,
  invoke: invokeContent,
  embed: embedContent,
  moderations: moderationsContent,
  rerank: rerankContent,
  images: imagesContent,
  speech: speechContent,
  transcriptions: transcriptionsContent,
}
