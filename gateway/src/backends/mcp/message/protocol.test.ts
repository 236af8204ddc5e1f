import { describe, expect, it } from 'vitest'
import { acceptsEventStream, acceptsPost, revisionOf } from './protocol.ts'

describe('the revision of a request', () => {
  const meta = { params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } } }

  it.each([
    [{}, undefined, 'session'],
    [{ 'mcp-protocol-version': '2025-06-18' }, undefined, 'session'],
    [{ 'mcp-protocol-version': '2024-11-05' }, undefined, 'session'],
    [{ 'mcp-protocol-version': '2026-07-28' }, undefined, 'sessionless'],
    [{}, meta, 'sessionless'],
    [{ 'mcp-protocol-version': '' }, undefined, 'unknown'],
    [{ 'mcp-protocol-version': '2099-01-01' }, meta, 'unknown'],
    [{}, { params: { _meta: 'x' } }, 'session'],
  ])('of %j with %j is one of kind %s', (headers, message, kind) => {
    expect(revisionOf(headers, message).kind).toBe(kind)
  })
})

describe('the accept header', () => {
  it('has to include both kinds of answers to a POST', () => {
    expect(acceptsPost('application/json, text/event-stream')).toBe(true)
    expect(acceptsPost('TEXT/event-stream; q=1 , application/JSON;q=0.5')).toBe(true)
    expect(acceptsPost('*/*')).toBe(true)
    expect(acceptsPost('application/jsonx, text/event-stream')).toBe(false)
    expect(acceptsPost(undefined)).toBe(false)
  })

  it('has to include the stream for a GET', () => {
    expect(acceptsEventStream('text/event-stream')).toBe(true)
    expect(acceptsEventStream('*/*')).toBe(true)
    expect(acceptsEventStream('application/json')).toBe(false)
    expect(acceptsEventStream(undefined)).toBe(false)
  })
})
