import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { echo } from '../../src/backends/llm/providers/echo/echo.ts'
import { createCancellation } from '../../src/lib/cancellation.ts'
import { readAll } from '../../src/net/http/body.ts'
import { responsesRequest } from '../support/responses-request.ts'
import {
  chatChunk,
  chatCompletion,
  embeddings,
  message,
  messageEvent,
  response,
  responseEvent,
  textChunk,
  textCompletion,
} from '../support/vendor-schemas.ts'

/** The objects in the `data` lines of a stream. An error event of chat has a shape of its own. */
function eventsIn(text: string): unknown[] {
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && !line.startsWith('data: [DONE]'))
  return lines.map((line): unknown => JSON.parse(line.slice(6))).filter((event) => !isChatError(event))
}

function isChatError(event: unknown): boolean {
  return typeof event === 'object' && event !== null && 'error' in event && !('type' in event)
}

function expectAll(schema: z.ZodType, values: readonly unknown[]): void {
  expect(values.length).toBeGreaterThan(0)
  for (const value of values) {
    const { error } = schema.safeParse(value)
    expect(error && `${error.message} in ${JSON.stringify(value)}`).toBeUndefined()
  }
}

const root = join(import.meta.dirname, 'llm')
const translated = [
  { direction: 'messages-to-chat', whole: message, event: messageEvent },
  { direction: 'messages-to-responses', whole: message, event: messageEvent },
  { direction: 'chat-to-messages', whole: chatCompletion, event: chatChunk },
  { direction: 'chat-to-responses', whole: chatCompletion, event: chatChunk },
]

describe.each(translated)(
  "responses of $direction match the vendor's schema",
  ({ direction, whole, event }) => {
    const folders = readdirSync(join(root, direction)).map((name) => ({
      name,
      folder: join(root, direction, name),
    }))

    it.each(folders.filter(({ folder }) => existsSync(join(folder, 'reply.json'))))('$name', ({ folder }) => {
      expectAll(whole, [JSON.parse(readFileSync(join(folder, 'reply.json'), 'utf8'))])
    })

    it.each(folders.filter(({ folder }) => existsSync(join(folder, 'stream.txt'))))(
      '$name, streamed',
      ({ folder }) => {
        expectAll(event, eventsIn(readFileSync(join(folder, 'stream.txt'), 'utf8')))
      },
    )
  },
)

it.each(['chat-to-responses', 'messages-to-responses', 'gemini-to-responses'])(
  'requests of %s match the schema of OpenAI',
  (direction) => {
    const requests = readdirSync(join(root, direction)).flatMap((name) => {
      const path = join(root, direction, name, 'upstream-request.json')
      return existsSync(path) ? [JSON.parse(readFileSync(path, 'utf8')).body] : []
    })
    expectAll(responsesRequest, requests)
  },
)

const messages = [{ role: 'user', content: 'hello there' }]
const schema = { type: 'object', properties: { city: { type: 'string' } } }
const chatTools = [{ type: 'function', function: { name: 'look', parameters: schema } }]
const echoes = [
  { path: '/chat/completions', request: { messages }, whole: chatCompletion, event: chatChunk },
  {
    path: '/chat/completions',
    request: { messages, n: 2, max_tokens: 1 },
    whole: chatCompletion,
    event: chatChunk,
  },
  {
    path: '/chat/completions',
    request: { messages, tools: chatTools, tool_choice: 'required' },
    whole: chatCompletion,
    event: chatChunk,
  },
  { path: '/completions', request: { prompt: 'hello there' }, whole: textCompletion, event: textChunk },
  { path: '/responses', request: { input: 'hello there' }, whole: response, event: responseEvent },
  {
    path: '/responses',
    request: { input: 'a b c d e f g', max_output_tokens: 1 },
    whole: response,
    event: responseEvent,
  },
  {
    path: '/responses',
    request: {
      input: 'hi',
      tools: [{ type: 'function', name: 'look', parameters: schema }],
      tool_choice: 'required',
    },
    whole: response,
    event: responseEvent,
  },
]

async function answerOf(path: string, request: object): Promise<string> {
  const reply = await echo.local?.({
    origin: '',
    path,
    method: 'POST',
    headers: {},
    body: JSON.stringify({ model: 'echo', ...request }),
    cancellation: createCancellation(),
  })
  return (await readAll(reply?.body, 1_000_000, 'internal')).toString()
}

describe("responses of echo match the vendor's schema", () => {
  it.each(echoes)('$path $request', async ({ path, request, whole }) => {
    expectAll(whole, [JSON.parse(await answerOf(path, request))])
  })

  it.each(echoes)('$path $request, streamed', async ({ path, request, event }) => {
    const streamed = { ...request, stream: true, stream_options: { include_usage: true } }
    expectAll(event, eventsIn(await answerOf(path, streamed)))
  })

  it('embeddings', async () => {
    expectAll(embeddings, [JSON.parse(await answerOf('/embeddings', { input: ['a', 'b'] }))])
  })
})
