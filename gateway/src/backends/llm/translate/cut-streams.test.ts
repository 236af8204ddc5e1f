import { describe, expect, it } from 'vitest'
import { chatWire } from '../../../../test/support/vendors/chat-wire.ts'
import { converseWire } from '../../../../test/support/vendors/converse-wire.ts'
import { geminiWire } from '../../../../test/support/vendors/gemini-wire.ts'
import { messagesWire } from '../../../../test/support/vendors/messages-wire.ts'
import { responsesWire } from '../../../../test/support/vendors/responses-wire.ts'
import type { Generated } from '../../../../test/support/vendors/scripted-model.ts'
import type { Wire } from '../../../../test/support/vendors/wire.ts'
import { createSseParser, formatSseEvent } from '../../../net/http/sse.ts'
import { createEventStreamParser } from '../providers/bedrock/event-stream.ts'
import { converseEvent } from '../providers/bedrock/sse-body.ts'
import type { Translation } from './translate.ts'
import { translationsFrom } from './translations.ts'

const wires: Readonly<Partial<Record<string, Wire>>> = {
  chat: chatWire,
  messages: messagesWire,
  generate_content: geminiWire,
  converse: converseWire,
  responses: responsesWire,
}

/** Texts that mark a stream as complete for clients, and those of an error. */
const ends = {
  chat: { complete: '[DONE]', error: '"error"' },
  messages: { complete: '"message_stop"', error: '"error"' },
  responses: { complete: '"response.completed"', error: '"error"' },
  generate_content: { complete: '"finishReason"', error: '"error"' },
  converse: { complete: 'event: metadata', error: 'event: exception' },
  cohere_chat: { complete: '[DONE]', error: '"finish_reason":"ERROR"' },
}

const generated: Generated = {
  reasoning: 'Hm… 🙂',
  text: 'Voilà 🙂',
  calls: [{ name: 'f', input: { city: 'Zürich' } }],
  finish: 'tools',
  citation: { url: 'https://example.com', title: 'Zürich' },
  tokens: { input: 20, cached: 6, output: 9, reasoning: 4 },
}

const directions = (
  ['chat', 'messages', 'responses', 'generate_content', 'converse', 'cohere_chat'] as const
).flatMap((client) =>
  translationsFrom(client).map((translation) => ({ client, upstream: translation.upstream, translation })),
)

/** The stream of an upstream as server-sent events. */
function streamOf(upstream: string): Buffer {
  const wire = wires[upstream]
  const include = ['reasoning.encrypted_content']
  const body = { model: 'm', stream_options: { include_usage: true }, include }
  const events = wire?.events(generated, body) ?? []
  if (upstream !== 'converse') return Buffer.from(events.join(''))
  let text = ''
  const parser = createEventStreamParser({
    maxMessageBytes: 10_000,
    onMessage(message) {
      text += formatSseEvent(converseEvent(message))
    },
  })
  for (const event of events) parser.push(Buffer.from(event))
  return Buffer.from(text)
}

function translate(translation: Translation, chunks: readonly Buffer[]): string {
  const translator = translation.stream({
    requestModel: 'm',
    now: () => 1_700_000_000_123,
    includeUsage: true,
  })
  let text = ''
  const parser = createSseParser({
    maxEventBytes: 100_000,
    onEvent(event) {
      for (const translated of translator.event(event)) text += formatSseEvent(translated)
    },
  })
  for (const chunk of chunks) parser.push(chunk)
  parser.end()
  for (const translated of translator.end()) text += formatSseEvent(translated)
  // Ids of responses are random.
  return text.replace(/(resp|msg|rs|fc)_[0-9a-f]{16,}/g, '$1')
}

describe.each(directions)(
  'a stream of $upstream for clients of $client',
  ({ client, upstream, translation }) => {
    const bytes = streamOf(upstream)
    const whole = translate(translation, [bytes])

    it('is complete', () => {
      for (const text of ['Züric', ends[client].complete]) expect(whole).toContain(text)
    })

    it('is the same in two chunks at every byte', () => {
      for (let at = 1; at < bytes.length; at += 1) {
        const found = translate(translation, [bytes.subarray(0, at), bytes.subarray(at)])
        if (found !== whole) expect([at, found]).toEqual([at, whole])
      }
    })

    it('is never complete if it ends at an earlier byte', () => {
      const { complete, error } = ends[client]
      for (let at = 0; at < bytes.length; at += 1) {
        const found = translate(translation, [bytes.subarray(0, at)])
        if (found === whole) continue
        const isMarked = found.includes(complete) || !found.includes(error)
        if (isMarked) expect([at, found]).toEqual([at, 'an error event'])
      }
    })
  },
)
