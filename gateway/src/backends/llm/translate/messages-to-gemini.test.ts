import { expect, it } from 'vitest'
import { messagesToGemini } from './messages-to-gemini.ts'

const messages = [{ role: 'user', content: 'Hi' }]

it('a request of messages has its top_k', () => {
  expect(
    messagesToGemini.request({ model: 'gemini-2.5-pro', max_tokens: 5, messages, top_k: 40 }),
  ).toMatchObject({
    kind: 'body',
    body: { generationConfig: { maxOutputTokens: 5, topK: 40 } },
  })
  expect(messagesToGemini.request({ model: 'gemini-2.5-pro', messages, top_k: 40 })).toMatchObject({
    body: { generationConfig: { topK: 40 } },
  })
  expect(messagesToGemini.request({ model: 'gemini-2.5-pro', messages })).not.toHaveProperty(
    'body.generationConfig',
  )
  expect(messagesToGemini.request({ messages, top_k: 1, container: 'x' })).toMatchObject({
    param: 'container',
  })
})
