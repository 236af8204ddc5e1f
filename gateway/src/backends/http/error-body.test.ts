import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type Body, type BodySource, readAll } from '../../net/http/body.ts'
import type { Headers } from '../../net/http/headers.ts'
import { hideInError } from './error-body.ts'

const secret = 'a-secret/of+the gateway'
const request = { origin: 'http://a', path: '/', method: 'GET', headers: {}, body: undefined }
const authorize = { placed: () => [secret] }

async function relayed(body: Body, { status = 401, headers = {} as Headers, by = authorize } = {}) {
  const reply = await hideInError({ status, headers, body }, request, by)
  return { text: (await readAll(reply.body, 1_000_000, 'internal')).toString(), headers: reply.headers }
}

function chunked(text: string, size = 7): BodySource {
  return {
    start(sink) {
      for (let at = 0; at < text.length; at += size) sink.write(Buffer.from(text.slice(at, at + size)))
      sink.end()
    },
    resume() {},
    cancel() {},
  }
}

const quoted = `{"error":${JSON.stringify(`key ${secret} is invalid`)}}`
const hidden = '{"error":"key [hidden] is invalid"}'
const lengthOf = (text: string | Buffer) => ({ 'content-length': String(Buffer.byteLength(text)) })

describe('an error of a backend', () => {
  it.each([
    ['a whole body', Buffer.from(quoted), lengthOf(quoted)],
    ['a stream with a length', chunked(quoted), lengthOf(quoted)],
    ['a coded body', gzipSync(quoted), { ...lengthOf(gzipSync(quoted)), 'content-encoding': 'gzip' }],
  ])('has no credential of the gateway in %s', async (_, body, headers) => {
    expect(await relayed(body, { headers })).toEqual({ text: hidden, headers: lengthOf(hidden) })
  })

  it('has none in a stream without a length', async () => {
    expect((await relayed(chunked(quoted))).text).toBe(hidden)
  })

  it.each([
    ['another text', Buffer.from('{"error":"no"}'), {}],
    ['a coded body', gzipSync('{"error":"no"}'), { 'content-encoding': 'gzip' }],
    ['a body that is not coded as declared', Buffer.from('plain'), { 'content-encoding': 'gzip' }],
    ['a stream', chunked('no'), {}],
  ])('is unchanged with %s', async (_, body, headers) => {
    const declared = body instanceof Uint8Array ? { ...headers, ...lengthOf(body) } : headers
    const before = body instanceof Uint8Array ? body.toString() : 'no'
    expect(await relayed(body, { headers: declared })).toEqual({ text: before, headers: declared })
  })

  it('is searched at its start, and forwarded completely', async () => {
    const rest = 'x'.repeat(100_000)
    expect((await relayed(chunked(quoted + rest, 1000))).text).toBe(hidden + rest)
    const large = Buffer.from(quoted + rest)
    expect((await relayed(large, { headers: lengthOf(large) })).text).toBe(quoted + rest)
    expect((await relayed(chunked(quoted + rest), { headers: lengthOf(large) })).text).toBe(quoted + rest)
  })
})

it('other responses, and those without a credential of the gateway, are not searched', async () => {
  expect((await relayed(Buffer.from(quoted), { status: 200 })).text).toBe(quoted)
  expect((await relayed(Buffer.from(quoted), { by: { placed: () => ['error'] } })).text).toBe(quoted)
  const events = { headers: { 'content-type': 'text/event-stream' } }
  expect((await relayed(chunked(quoted), events)).text).toBe(quoted)
})
