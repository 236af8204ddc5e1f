import { expect, it } from 'vitest'
import { formatSseEvent } from '../../../net/http/sse.ts'
import { createObjectEvent, objectOf } from './stream-event.ts'

it('an object event has the text of its object for clients, and the object for translations', () => {
  const json = { type: 'ping', text: 'a\nb' }
  const event = createObjectEvent('ping', json)
  expect(formatSseEvent(event)).toBe('event: ping\ndata: {"type":"ping","text":"a\\nb"}\n\n')
  expect(objectOf(event)).toBe(json)
})

it('the object of a received event is that of its data, with exact numbers', () => {
  const object = objectOf({ data: '{"id":12345678901234567890}' })
  expect(JSON.stringify(object)).toBe('{"id":12345678901234567890}')
  expect(objectOf({ data: '[DONE]' })).toBeUndefined()
  expect(objectOf({ data: '[1]' })).toBeUndefined()
})
