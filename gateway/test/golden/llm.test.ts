import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chatToGemini } from '../../src/backends/llm/translate/chat-to-gemini/chat-to-gemini.ts'
import { chatToMessages } from '../../src/backends/llm/translate/chat-to-messages/chat-to-messages.ts'
import { chatToResponses } from '../../src/backends/llm/translate/chat-to-responses/chat-to-responses.ts'
import {
  cohereToChat,
  cohereToMessages,
} from '../../src/backends/llm/translate/cohere-to-chat/cohere-to-chat.ts'
import { converseToMessages } from '../../src/backends/llm/translate/converse-to-messages/converse-to-messages.ts'
import { parseExactObject } from '../../src/backends/llm/translate/exact-json.ts'
import {
  geminiToChat,
  geminiToConverse,
  geminiToMessages,
  geminiToResponses,
} from '../../src/backends/llm/translate/gemini-to-chat/gemini-to-chat.ts'
import {
  messagesToChat,
  messagesToResponses,
} from '../../src/backends/llm/translate/messages-to-chat/messages-to-chat.ts'
import { messagesToConverse } from '../../src/backends/llm/translate/messages-to-converse/messages-to-converse.ts'
import { responsesToChat } from '../../src/backends/llm/translate/responses-to-chat/responses-to-chat.ts'
import type { Translation, TranslationContext } from '../../src/backends/llm/translate/translate.ts'
import type { JsonObject, JsonValue } from '../../src/lib/json/json.ts'
import { createSseParser, formatSseEvent } from '../../src/net/http/sse.ts'

/**
 * Wire pairs: inputs are written by hand in the form of the real APIs, outputs are compared.
 * UPDATE_GOLDEN=1 writes the outputs, to be reviewed before commit.
 */
const update = process.env['UPDATE_GOLDEN'] === '1'
const root = join(import.meta.dirname, 'llm')
const directions: Record<string, Translation> = {
  'chat-to-gemini': chatToGemini,
  'chat-to-messages': chatToMessages,
  'chat-to-responses': chatToResponses,
  'cohere-to-chat': cohereToChat,
  'cohere-to-messages': cohereToMessages,
  'converse-to-messages': converseToMessages,
  'gemini-to-chat': geminiToChat,
  'gemini-to-converse': geminiToConverse,
  'gemini-to-messages': geminiToMessages,
  'gemini-to-responses': geminiToResponses,
  'messages-to-chat': messagesToChat,
  'messages-to-converse': messagesToConverse,
  'messages-to-responses': messagesToResponses,
  'responses-to-chat': responsesToChat,
}

for (const [direction, translation] of Object.entries(directions)) {
  describe(`golden llm/${direction}`, () => {
    for (const name of readdirSync(join(root, direction))) {
      const folder = join(root, direction, name)
      const context: TranslationContext = {
        requestModel: 'model-asked-for',
        now: () => 1_700_000_000_123,
        includeUsage: true,
      }
      const given = (file: string) => existsSync(join(folder, file))

      if (given('request.json')) {
        it(`${name}: request`, () => {
          compare(
            folder,
            'upstream-request.json',
            indented(translation.request(readObject(folder, 'request.json'))),
          )
        })
      }
      if (given('upstream-reply.json')) {
        it(`${name}: reply`, () => {
          const reply = translation.reply(readObject(folder, 'upstream-reply.json'), context)
          compare(folder, 'reply.json', indented(reply))
        })
      }
      if (given('upstream-stream.txt')) {
        it(`${name}: stream`, () => {
          const upstream = readFileSync(join(folder, 'upstream-stream.txt'))
          compare(folder, 'stream.txt', translateStream(translation, context, upstream))
        })
      }
    }
  })
}

function translateStream(
  translation: Translation,
  context: TranslationContext,
  upstream: Uint8Array,
): string {
  const translator = translation.stream(context)
  let text = ''
  const parser = createSseParser({
    maxEventBytes: 100_000,
    onEvent(event) {
      for (const translated of translator.event(event)) text += formatSseEvent(translated)
    },
  })
  parser.push(upstream)
  parser.end()
  for (const translated of translator.end()) text += formatSseEvent(translated)
  return text
}

function compare(folder: string, file: string, actual: string): void {
  const path = join(folder, file)
  if (update) writeFileSync(path, actual)
  expect(actual).toBe(readFileSync(path, 'utf8'))
}

function readObject(folder: string, file: string): JsonObject {
  const object = parseExactObject(readFileSync(join(folder, file), 'utf8'))
  if (object === undefined) throw new Error(`${join(folder, file)} is not a JSON object`)
  return frozen(object)
}

/** Translations share their inputs with guards, logs and further attempts, so they must not change them. */
function frozen<T extends JsonValue>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) frozen(member)
  return Object.freeze(value)
}

function indented(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
