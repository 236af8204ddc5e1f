import { describe, expect, it } from 'vitest'
import { errorResultText, resultText } from './result.ts'

function result(body: string | Buffer, { status = 200, type = 'application/json' } = {}) {
  return JSON.parse(resultText({ status, headers: { 'content-type': type }, body: Buffer.from(body) }))
}

describe('the result of a call', () => {
  it('is a JSON object as text and as structured content', () => {
    expect(result('{"a":1}')).toEqual({
      content: [{ type: 'text', text: '{"a":1}' }],
      structuredContent: { a: 1 },
    })
  })

  it('preserves the numbers of the API', () => {
    const text = resultText({
      status: 200,
      headers: {},
      body: Buffer.from('{"id":90071992547409931,"f":1.10}'),
    })
    expect(text).toContain('"structuredContent":{"id":90071992547409931,"f":1.10}')
  })

  it.each(['[1]', '"x"', '7', 'null'])('wraps other JSON, which structured content cannot be: %s', (body) => {
    expect(result(body)).toEqual({
      content: [{ type: 'text', text: body }],
      structuredContent: { data: JSON.parse(body) },
    })
  })

  it('gives text that is no JSON with its status', () => {
    expect(result('Hello', { type: 'text/plain', status: 201 })['structuredContent']).toEqual({
      code: 201,
      message: 'Hello',
    })
    expect(result('', { status: 204 })['structuredContent']).toEqual({ code: 204, message: '' })
  })

  it('does not mind a byte order mark', () => {
    expect(result('\ufeff{"a":1}')['structuredContent']).toEqual({ a: 1 })
  })

  it('is no error when the API refuses, and one when it fails or redirects', () => {
    expect(result('{"error":"no"}', { status: 404 })).not.toHaveProperty('isError')
    expect(result('{"error":"down"}', { status: 503 })).toEqual({
      content: [{ type: 'text', text: 'the API answered status 503: {"error":"down"}' }],
      structuredContent: { error: 'down' },
      isError: true,
    })
    expect(result('', { status: 302 })).toMatchObject({ isError: true })
  })

  it.each([
    ['image/png', { type: 'image', data: 'AAH/', mimeType: 'image/png' }],
    ['audio/mpeg; x=1', { type: 'audio', data: 'AAH/', mimeType: 'audio/mpeg' }],
    [
      'application/octet-stream',
      {
        type: 'resource',
        resource: { uri: 'openapi:answer', mimeType: 'application/octet-stream', blob: 'AAH/' },
      },
    ],
  ])('keeps bytes of %s', (type, content) => {
    expect(result(Buffer.from([0, 1, 255]), { type })).toEqual({ content: [content] })
  })

  it('describes the error of a call that was not sent', () => {
    expect(JSON.parse(errorResultText('no "x"'))).toEqual({
      content: [{ type: 'text', text: 'no "x"' }],
      isError: true,
    })
  })
})
