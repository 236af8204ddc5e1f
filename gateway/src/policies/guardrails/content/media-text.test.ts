import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../lib/json/json.ts'
import { contentReaders } from './content.ts'
import { joinedText, splicesFor } from './content-reader.ts'
import { createReading } from './reading.ts'

const secret = 'a secret, größer'
const base64 = Buffer.from(secret).toString('base64')
const url = `data:text/plain;base64,${base64}`
const messages = (part: JsonObject) => ({ messages: [{ role: 'user', content: [part] }] })
const input = (part: JsonObject) => ({ input: [{ role: 'user', content: [part] }] })
const contents = (part: JsonObject) => ({ contents: [{ role: 'user', parts: [part] }] })

function textsIn(api: keyof typeof contentReaders, body: JsonObject) {
  return contentReaders[api].request(body, createReading('request'))
}

function shown(api: keyof typeof contentReaders, body: JsonObject): string {
  return textsIn(api, body).map(joinedText).join('|')
}

describe('a file of text', () => {
  it.each([
    ['chat', messages({ type: 'file', file: { filename: 'a.txt', file_data: url } })],
    ['chat', messages({ type: 'file', file: { file_data: base64 } })],
    ['chat', messages({ type: 'image_url', image_url: { url } })],
    ['chat', messages({ type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } })],
    ['chat', messages({ type: 'image_url', image_url: { url: `DATA:text/plain;x=1 ; BASE64 ,${base64}` } })],
    ['chat', messages({ type: 'image_url', image_url: { url: `data:,${encodeURIComponent(secret)}` } })],
    ['chat', messages({ type: 'text', file: { file_data: url } })],
    ['responses', input({ type: 'input_file', filename: 'a.py', file_data: url })],
    ['responses', input({ type: 'input_image', image_url: url })],
    [
      'messages',
      messages({ type: 'document', source: { type: 'base64', media_type: 'text/plain', data: base64 } }),
    ],
    [
      'messages',
      messages({ type: 'image', source: { type: 'base64', media_type: 'text/plain', data: base64 } }),
    ],
    ['messages', messages({ type: 'image', source: { type: 'url', url } })],
    [
      'messages',
      messages({
        type: 'tool_result',
        content: [{ type: 'image', source: { type: 'base64', data: base64 } }],
      }),
    ],
    ['generate_content', contents({ inlineData: { mimeType: 'text/csv', data: base64 } })],
    ['generate_content', contents({ inline_data: { mime_type: 'application/x-python', data: base64 } })],
    [
      'generate_content',
      contents({ functionResponse: { name: 'f', parts: [{ inlineData: { data: base64 } }] } }),
    ],
  ] as const)('is a text of %s in %j', (api, body) => {
    expect(
      shown(api, body)
        .split(/a\.\w+\s/)
        .join(''),
    ).toBe(secret)
  })

  it.each(['generateContentRequest', 'generate_content_request'])('is a text of %s to count', (name) => {
    const body = { [name]: contents({ inlineData: { mimeType: 'text/plain', data: base64 } }) }
    expect(shown('generate_content', body)).toBe(secret)
  })

  it('stays a file after a change', () => {
    const body = messages({ type: 'file', file: { file_data: url } })
    expect(splicesFor(textsIn('chat', body), ['a ******'], contentReaders.chat)).toEqual([
      {
        kind: 'set',
        path: ['messages', 0, 'content', 0, 'file', 'file_data'],
        json: JSON.stringify(`data:text/plain;base64,${Buffer.from('a ******').toString('base64')}`),
      },
    ])
  })

  it.each([
    ['text/plain', Buffer.from(secret, 'utf16le')],
    ['text/plain', Buffer.from([0x61, 0xff])],
    ['application/x-javascript', Buffer.from(`\0${secret}`)],
    ['image/svg+xml', Buffer.from(`\0${secret}`)],
  ])('of %s in another encoding fails the check', (type, bytes) => {
    const part = { type: 'image_url', image_url: { url: `data:${type};base64,${bytes.toString('base64')}` } }
    expect(() => textsIn('chat', messages(part))).toThrow('not text in UTF-8')
  })

  it.each([
    `data:text/plain;base64,AAAA=${base64}`,
    `data:text/plain;x=${'x'.repeat(2000)};base64,${base64}`,
    'data:text/plain,%ff',
  ])('in an ambiguous form fails the check: %s', (ambiguous) => {
    const part = { type: 'image_url', image_url: { url: ambiguous } }
    expect(() => textsIn('chat', messages(part))).toThrow()
  })

  it('with the name of a text and another media type fails the check', () => {
    const data = Buffer.from(`\0${secret}`).toString('base64')
    const file = { filename: 'a.txt', file_data: `data:application/pdf;base64,${data}` }
    expect(() => textsIn('chat', messages({ type: 'file', file }))).toThrow('not text in UTF-8')
  })
})

it.each([
  { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==' } },
  { type: 'image_url', image_url: { url: 'https://example.com/data:text/plain' } },
  { type: 'file', file: { filename: 'a.v2', file_data: 'data:application/pdf;base64,JVBERi0xLjcKAAAA' } },
  { type: 'image_url', image_url: { url: '' } },
])('binary files and addresses have no text but their name: %j', (part) => {
  expect(shown('chat', messages(part))).toBe(part.file?.filename ?? '')
})
