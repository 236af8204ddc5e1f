import { expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import { isEnd } from '../stream/read-event.ts'
import { cohereContent } from './cohere.ts'
import { createReading } from './reading.ts'

const requestTexts = (message: JsonObject) =>
  cohereContent
    .request({ messages: [message] }, createReading('request'))
    .flatMap(({ parts }) => parts.map(({ text, path }) => [path.join('.'), text]))

it.each([
  ['tool', { type: 'document', document: { id: 'd', data: { note: 'words' } } }, 'document.data.note'],
  ['user', { type: 'document', document: { data: 'words' } }, 'document.data'],
])('documents in content of role %s are text, in lists and alone', (role, part, place) => {
  expect(requestTexts({ role, content: [part] })).toContainEqual([`messages.0.content.0.${place}`, 'words'])
  expect(requestTexts({ role, content: part })).toContainEqual([`messages.0.content.${place}`, 'words'])
})

it('a document with the type of the last event does not end a stream', () => {
  const sources = [{ type: 'document', id: 'd', document: { type: 'message-end' } }]
  const cited = { type: 'citation-start', index: 0, delta: { message: { citations: { sources } } } }
  expect(isEnd({ event: 'citation-start', data: JSON.stringify(cited) }, 'cohere_chat')).toBe(false)
  const end = { type: 'message-end', delta: { finish_reason: 'COMPLETE' } }
  expect(isEnd({ event: 'message-end', data: JSON.stringify(end) }, 'cohere_chat')).toBe(true)
})
