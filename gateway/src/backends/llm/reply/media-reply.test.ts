import { describe, expect, it } from 'vitest'
import { call, type FixtureProvider, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import type { JsonObject } from '../../../lib/json/json.ts'

/** Calls at a path with a provider that answers with `reply`. */
function answered(path: string, body: JsonObject, reply: FixtureProvider, provider = 'openai') {
  const gateway = fixtureGateway({ models: [{ name: '*', provider, params: { apiKey: 'k' } }] }, reply)
  return call(gateway, { path, body: { model: 'm', ...body } }).then((outcome) => ({ ...outcome, gateway }))
}

const events = (...lines: string[]): FixtureProvider => {
  return () => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: Buffer.from(lines.map((line) => `data: ${line}\n\n`).join('')),
  })
}

describe('usage', () => {
  it.each([
    [{ usage: { total_tokens: 15 } }, 15],
    [{ usage: { prompt_tokens: 11, total_tokens: 15 } }, 11],
    [{ meta: { billed_units: { search_units: 1 }, tokens: { input_tokens: 9, output_tokens: 0 } } }, 9],
  ])('of rerank is read from %j', async (reported, inputTokens) => {
    const reply = () => jsonReply({ results: [], ...reported })
    const { exchange } = await answered('/v1/rerank', { query: 'q', documents: ['d'] }, reply, 'cohere')
    expect(exchange.facts.usage).toMatchObject({ inputTokens, outputTokens: 0, estimated: false })
  })

  it('of rerank by search units is estimated from the input, not from repeated documents', async () => {
    const results = [{ index: 0, relevance_score: 0.5, document: { text: 'x'.repeat(400) } }]
    const reply = () => jsonReply({ results, meta: { billed_units: { search_units: 1 } } })
    const request = { query: 'q'.repeat(40), documents: ['d'.repeat(40)] }
    const { exchange } = await answered('/v2/rerank', request, reply, 'cohere')
    expect(exchange.facts.usage).toMatchObject({ inputTokens: 20, outputTokens: 0, estimated: true })
  })

  it('of moderations is not counted', async () => {
    const { exchange, gateway } = await answered('/v1/moderations', { input: 'hello' }, () =>
      jsonReply({ results: [] }),
    )
    expect(exchange.facts.usage).toBeUndefined()
    expect(gateway.metered).toEqual(['done * openai'])
  })

  it('of images is read from the object and from the last event', async () => {
    const usage = { input_tokens: 50, output_tokens: 4160, total_tokens: 4210 }
    const whole = await answered('/v1/images/generations', { prompt: 'p' }, () =>
      jsonReply({ data: [], usage }),
    )
    expect(whole.exchange.facts.usage).toMatchObject({
      inputTokens: 50,
      outputTokens: 4160,
      estimated: false,
    })
    const completed = JSON.stringify({ type: 'image_generation.completed', b64_json: 'AAAA', usage })
    const partial = JSON.stringify({
      type: 'image_generation.partial_image',
      b64_json: 'A'.repeat(2_000_000),
    })
    const stream = await answered(
      '/v1/images/generations',
      { prompt: 'p', stream: true },
      events(partial, completed),
    )
    expect(stream.exchange.facts.usage).toMatchObject({
      inputTokens: 50,
      outputTokens: 4160,
      estimated: false,
    })
    expect(stream.text).toContain(partial)
    expect(stream.exchange.log.errorCode).toBeUndefined()
  })

  it('of speech is read from its events, and estimated from the input of bytes', async () => {
    const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }
    const done = JSON.stringify({ type: 'speech.audio.done', usage })
    const counted = await answered('/v1/audio/speech', { input: 'hi', stream_format: 'sse' }, events(done))
    expect(counted.exchange.facts.usage).toMatchObject({ totalTokens: 115, estimated: false })
    const audio: FixtureProvider = () => ({
      status: 200,
      headers: { 'content-type': 'audio/mpeg', 'set-cookie': 'a=b' },
      body: Buffer.from([0, 255, 1]),
    })
    const bytes = await answered('/v1/audio/speech', { input: 'x'.repeat(40) }, audio)
    expect(bytes.headers).toEqual({ 'content-type': 'audio/mpeg' })
    expect(bytes.exchange.facts.usage).toMatchObject({ inputTokens: 10, outputTokens: 0, estimated: true })
  })
})

describe('a stream', () => {
  it('of images without its last event ends with an error', async () => {
    const partial = JSON.stringify({ type: 'image_generation.partial_image', b64_json: 'AAAA' })
    const { text } = await answered('/v1/images/generations', { prompt: 'p', stream: true }, events(partial))
    expect(text).toContain('"code":"upstream_reset"')
  })

  it('of images ends at an error of the provider', async () => {
    const error = JSON.stringify({
      error: { message: 'moderation_blocked', type: 'image_generation_user_error' },
    })
    const { text, exchange } = await answered(
      '/v1/images/generations',
      { prompt: 'p', stream: true },
      events(error),
    )
    expect(text).toBe(`data: ${error}\n\n`)
    expect(exchange.log.errorCode).toBe('upstream_invalid')
  })
})

it('refuses calls that a provider lacks in the shape of the client', async () => {
  const reply = () => jsonReply({})
  const rerank = await answered('/v2/rerank', { query: 'q', documents: [] }, reply)
  expect(rerank.status).toBe(400)
  expect(JSON.parse(rerank.text)).toEqual({
    code: 'unsupported_endpoint',
    message: expect.stringMatching(/^provider openai of model "\*" does not offer rerank: .*cohere/),
  })
  const missing = await answered('/v1/rerank', { query: 'q', documents: [], model: '' }, reply, 'cohere')
  expect(JSON.parse(missing.text)).toEqual({
    code: 'missing_model',
    message: 'model must be a non-empty string',
  })
})
