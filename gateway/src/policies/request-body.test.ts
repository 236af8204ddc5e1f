import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'
import type { Body, BodySource } from '../net/http/body.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import { compileRequestBodyLimits } from '../pipeline/request-body.ts'
import { compileRequestBody } from './request-body.ts'

const { onRequest } = compileRequestBody(compileRequestBodyLimits(100, fixtureContext()))

/** The body in pieces; `room` is the memory that is left for it. */
function source(pieces: readonly Uint8Array[], room = Number.POSITIVE_INFINITY): BodySource {
  let left = room
  return {
    start(sink) {
      for (const piece of pieces) sink.write(piece)
      sink.end()
    },
    resume() {},
    cancel() {},
    budget: {
      acquire(bytes) {
        left -= bytes
        return left >= 0
      },
    },
  }
}

function exchangeWith(body: Body, headers: Record<string, string | string[]> = {}): Exchange {
  return { ...fixtureExchange({ headers }), body }
}

async function forwarded(exchange: Exchange) {
  expect(await onRequest?.(exchange)).toBeUndefined()
  const headers = { ...exchange.facts.request.headers }
  for (const edit of exchange.forwarding?.headerEdits ?? []) edit(headers)
  return { seen: exchange.facts.body, body: exchange.body, headers }
}

describe('a body that rules read', () => {
  it('is forwarded as the same bytes', async () => {
    const { seen, body } = await forwarded(exchangeWith(source([Buffer.from('ab'), Buffer.from('c')])))
    expect(seen).toEqual(Buffer.from('abc'))
    expect(body).toBe(seen)
  })

  it('may be at hand already, empty or absent', async () => {
    expect((await forwarded(exchangeWith(Buffer.from('a')))).seen).toEqual(Buffer.from('a'))
    expect(await forwarded(exchangeWith(undefined))).toMatchObject({ body: undefined })
    const { seen, body } = await forwarded(exchangeWith(source([]), { 'content-encoding': 'gzip' }))
    expect([seen?.byteLength, body]).toEqual([0, undefined])
  })

  it('loses its content coding and the headers about it', async () => {
    const headers = { 'content-encoding': 'gzip', 'content-digest': 'sha-256=:x:', 'x-own': '1' }
    const { seen, body, headers: left } = await forwarded(exchangeWith(source([gzipSync('secret')]), headers))
    expect(String(seen)).toBe('secret')
    expect(body).toBe(seen)
    expect(left).toEqual({ 'x-own': '1' })
  })

  it.each([
    ['too large', source([Buffer.alloc(60), Buffer.alloc(41)]), {}, 413],
    ['too large once decoded', source([gzipSync(Buffer.alloc(101))]), { 'content-encoding': 'gzip' }, 413],
    ['no gzip', source([Buffer.from('plain')]), { 'content-encoding': 'gzip' }, 400],
  ])('is refused when it is %s', async (_, body, headers, status) => {
    expect(await onRequest?.(exchangeWith(body, headers))).toMatchObject({ status })
  })

  it.each([
    ['of an unknown coding', { 'content-encoding': 'compress' }, 'unsupported_encoding'],
    ['of two codings', { 'content-encoding': 'identity, gzip' }, 'unsupported_encoding'],
    ['of two codings in two fields', { 'content-encoding': ['identity', 'gzip'] }, 'unsupported_encoding'],
  ])('%s is refused', async (_, headers, code) => {
    const exchange = exchangeWith(source([gzipSync('secret')]), headers)
    await expect(onRequest?.(exchange)).rejects.toMatchObject({ code })
  })

  it.each([
    ['as it comes', source([Buffer.alloc(50)], 49), {}],
    ['once decoded', source([gzipSync(Buffer.alloc(90))], 60), { 'content-encoding': 'gzip' }],
  ])('counts in the memory for bodies %s', async (_, body, headers) => {
    await expect(onRequest?.(exchangeWith(body, headers))).rejects.toMatchObject({ code: 'overloaded' })
  })
})
