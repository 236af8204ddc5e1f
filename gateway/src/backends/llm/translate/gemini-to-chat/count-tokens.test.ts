import { expect, it } from 'vitest'
import { geminiCountToBedrock, geminiCountToMessages } from './count-tokens.ts'

const context = { requestModel: 'm', now: () => 0, includeUsage: false }
const contents = [{ parts: [{ text: 'Hi' }] }]
const systemInstruction = { parts: [{ text: 'Be brief.' }] }

it('a count has the fields of messages', () => {
  const body = { model: 'm', system: 'Be brief.', messages: [{ role: 'user', content: 'Hi' }] }
  const config = { maxOutputTokens: 5 }
  expect(geminiCountToMessages.request({ model: 'm', stream: false, contents, systemInstruction })).toEqual({
    kind: 'body',
    body,
  })
  const whole = {
    model: 'models/other',
    contents,
    system_instruction: systemInstruction,
    generationConfig: config,
  }
  expect(geminiCountToMessages.request({ model: 'm', generate_content_request: whole })).toEqual({
    kind: 'body',
    body,
  })
  expect(geminiCountToMessages.request({ model: 'm', contents: [] })).toMatchObject({ param: 'contents' })
})

it('a count by Amazon Bedrock has the same result', () => {
  expect(geminiCountToBedrock.request({ model: 'm', contents })).toMatchObject({
    body: { input: { converse: { messages: [{ role: 'user', content: [{ text: 'Hi' }] }] } } },
  })
  expect(geminiCountToBedrock.reply({ inputTokens: 17 }, context)).toEqual({ totalTokens: 17 })
  expect(geminiCountToMessages.reply({ input_tokens: 14 }, context)).toEqual({ totalTokens: 14 })
  expect(() => geminiCountToMessages.reply({}, context)).toThrow('no token count')
  expect(() => geminiCountToMessages.stream(context)).toThrow('not a stream')
  expect(geminiCountToMessages.error(404, '{}')).toMatchObject({ error: { status: 'NOT_FOUND' } })
})
