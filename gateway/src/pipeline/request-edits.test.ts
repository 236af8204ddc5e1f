import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import type { BodySource } from '../net/http/body.ts'
import type { Headers } from '../net/http/headers.ts'
import type { Exchange } from './exchange.ts'
import { editRequestHeaders, replaceRequestBody, setRequestPseudoHeader } from './request-edits.ts'

function forwardedHeaders(exchange: Exchange, headers: Headers): Headers {
  const copy = { ...headers }
  for (const edit of exchange.forwarding?.headerEdits ?? []) edit(copy)
  return copy
}

describe('header edits', () => {
  it('apply in order to a copy', () => {
    const exchange = fixtureExchange({ headers: { 'x-a': '1', 'x-b': '1' } })
    editRequestHeaders(exchange, [
      { kind: 'append', name: 'x-a', value: '2' },
      { kind: 'set', name: 'x-c', value: ['3', '4'] },
      { kind: 'remove', name: 'x-b' },
    ])
    expect(forwardedHeaders(exchange, exchange.facts.request.headers)).toEqual({
      'x-a': '1,2',
      'x-c': ['3', '4'],
    })
    expect(exchange.facts.request.headers).toEqual({ 'x-a': '1', 'x-b': '1' })
  })

  it('create no forwarding state without an edit', () => {
    const exchange = fixtureExchange({})
    editRequestHeaders(exchange, [])
    expect(exchange.forwarding).toBeUndefined()
  })
})

describe('pseudo-headers', () => {
  it('change path and query, normalised', () => {
    const exchange = fixtureExchange({})
    expect(setRequestPseudoHeader(exchange, ':path', '/a/./b/../c/?x=1')).toBe(true)
    expect(exchange.forwarding).toMatchObject({ path: '/a/c/', query: '?x=1' })
  })

  it('change method, host and stated scheme', () => {
    const exchange = fixtureExchange({ method: 'POST' })
    expect(setRequestPseudoHeader(exchange, ':method', 'PUT')).toBe(true)
    expect(setRequestPseudoHeader(exchange, ':authority', 'a.example:8080')).toBe(true)
    expect(setRequestPseudoHeader(exchange, ':scheme', 'https')).toBe(true)
    expect(exchange.forwarding).toMatchObject({ method: 'PUT', host: 'a.example:8080' })
    expect(forwardedHeaders(exchange, {})).toEqual({ 'x-forwarded-proto': 'https' })
  })

  it.each([
    [':path', 'x'],
    [':path', '/a b'],
    [':path', '/a\r\nx: y'],
    [':path', '/a#b'],
    [':path', '/%zz'],
    [':path', '/a/%2e%2e%2fb'],
    [':path', `/${'a'.repeat(20_000)}`],
    [':method', 'GET /'],
    [':method', 'CONNECT'],
    [':method', 'TRACE'],
    [':method', 'HEAD'],
    [':authority', 'a b'],
    [':authority', 'a\r\nx: y'],
    [':scheme', 'ftp'],
  ] as const)('reject %s with the value %j', (name, value) => {
    const exchange = fixtureExchange({ method: 'POST' })
    expect(setRequestPseudoHeader(exchange, name, value)).toBe(false)
    expect(exchange.forwarding).toBeUndefined()
  })
})

describe('a replaced body', () => {
  it('cancels the body of the client and removes the fields of its coding', () => {
    let cancelled = false
    const source: BodySource = { start() {}, resume() {}, cancel: () => (cancelled = true) }
    const exchange = fixtureExchange({ method: 'POST' })
    exchange.body = source
    expect(replaceRequestBody(exchange, Buffer.from('new'))).toBe(true)
    expect(cancelled).toBe(true)
    expect(String(exchange.body)).toBe('new')
    expect(
      forwardedHeaders(exchange, { 'content-encoding': 'gzip', digest: 'x', 'content-type': 'text/a' }),
    ).toEqual({ 'content-type': 'text/a' })
  })

  it('is none if it is empty', () => {
    const exchange = fixtureExchange({ method: 'POST' })
    exchange.body = Buffer.from('x')
    replaceRequestBody(exchange, new Uint8Array(0))
    expect(exchange.body).toBeUndefined()
  })
})
