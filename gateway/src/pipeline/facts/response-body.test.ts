import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../exchange.ts'
import { recordResponseBody } from './response-body.ts'

async function recorded(reply: Partial<Reply>, maxBytes = 100) {
  const exchange = { facts: {} } as Exchange
  const whole = { status: 200, headers: {}, body: undefined, ...reply }
  const forwarded = await recordResponseBody(exchange, whole, maxBytes)
  const { response } = exchange.facts
  const text = response?.body === undefined ? undefined : Buffer.from(response.body).toString()
  return { forwarded, response, text }
}

describe('response body of expressions', () => {
  it('has the bytes without content coding, and forwards the coded ones', async () => {
    const body = gzipSync('{"a":1}')
    const { forwarded, text } = await recorded({ headers: { 'content-encoding': 'gzip' }, body })
    expect([text, forwarded.body]).toEqual(['{"a":1}', body])
  })

  it('is empty for a reply without a body', async () => {
    expect((await recorded({ status: 204 })).text).toBe('')
  })

  it.each<[string, Partial<Reply>]>([
    ['an event stream', { headers: { 'content-type': 'text/event-stream' }, body: Buffer.from('data: 1') }],
    ['a body above the limit', { body: Buffer.alloc(101) }],
    ['an unsupported coding', { headers: { 'content-encoding': 'x' }, body: Buffer.from('a') }],
    ['an invalid coding', { headers: { 'content-encoding': 'gzip' }, body: Buffer.from('a') }],
    [
      'a body above the limit when decoded',
      { headers: { 'content-encoding': 'gzip' }, body: gzipSync('a'.repeat(500)) },
    ],
  ])('has no value for %s', async (_, reply) => {
    const { forwarded, response, text } = await recorded(reply)
    expect([text, response?.code, forwarded.body]).toEqual([undefined, 200, reply.body])
  })

  it('is not the one of an earlier reply if it has no value', async () => {
    const exchange = { facts: { response: { code: 503, headers: {}, body: Buffer.from('earlier') } } }
    const reply = { status: 200, headers: {}, body: Buffer.alloc(101) }
    await recordResponseBody(exchange as unknown as Exchange, reply, 100)
    expect(exchange.facts.response).toEqual({ code: 200, headers: {}, body: undefined })
  })
})
