import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai'
import OpenAI, { toFile } from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, aliceRecord, openAiModel } from '../support/llm-config.ts'
import { cohereKey, formOf, imageUsage, mockCohere, mockMedia } from '../support/mock-media.ts'
import { openAiKey } from '../support/mock-openai.ts'
import type { MockServer, SeenRequest } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

let media: MockServer
let cohere: MockServer
let gateway: Gateway

/** The official SDK, without the gateway and through it. */
let clients: { direct: OpenAI; through: OpenAI }
let rerankers: Record<'direct' | 'through', { one: CohereClient; two: CohereClientV2 }>

const picture = Buffer.alloc(90_000, 3)
const otherKey = 'tg-canary-other-52fe'
const ownKey = 'tg-canary-small-71aa'

beforeAll(async () => {
  media = await mockMedia({ lifetime: 'file' })
  cohere = await mockCohere({ lifetime: 'file' })
  const guard = { regex: { action: 'reject', rules: [{ pattern: 'SECRET' }] } }
  const models = ['omni-moderation-*', 'gpt-image-*', 'dall-e-*', 'tts-*', 'gpt-4o-*']
  const mask = { regex: { action: 'mask', rules: [{ pattern: 'Ada Lovelace' }] } }
  gateway = await startGateway(
    {
      config: { modelCatalog: [{ inline: catalog }] },
      llm: {
        models: [
          ...models.map((name) => openAiModel(name, media.url)),
          openAiModel('guarded-*', media.url, { guardrails: { request: [guard] } }),
          openAiModel('listening', media.url, {
            params: { baseUrl: `${media.url}/v1`, apiKey: openAiKey, model: 'whisper-1' },
            overrides: { language: 'en' },
            guardrails: { request: [guard], response: [mask] },
          }),
          openAiModel('listening-chat', media.url, { guardrails: { response: [mask] } }),
          {
            name: 'rerank-*',
            provider: 'cohere',
            params: { baseUrl: `${cohere.url}/compatibility/v1`, apiKey: cohereKey },
          },
          { name: 'echo', provider: 'echo' },
        ],
        policies: {
          apiKey: {
            mode: 'strict',
            keys: [
              aliceRecord,
              { key: otherKey, metadata: { id: 'key-other' } },
              { key: ownKey, allowedModels: ['tts-*'], metadata: { id: 'key-small' } },
            ],
          },
        },
      },
    },
    { lifetime: 'file' },
  )
  const openAi = (apiKey: string, url: string) => new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })
  clients = { direct: openAi(openAiKey, media.url), through: openAi(aliceKey, gateway.url) }
  const reranker = (token: string, environment: string) => {
    const options = { token, environment, maxRetries: 0 }
    return { one: new CohereClient(options), two: new CohereClientV2(options) }
  }
  rerankers = { direct: reranker(cohereKey, cohere.url), through: reranker(aliceKey, gateway.url) }
})

const catalog = {
  providers: { openai: { models: { 'gpt-image-1': { rates: { input: '5.00', output: '40.00' } } } } },
}

/** Makes a call without and with the gateway, and expects equal results. */
async function same<T>(make: (client: OpenAI) => Promise<T>): Promise<T> {
  const [direct, through] = [await make(clients.direct), await make(clients.through)]
  expect(through).toEqual(direct)
  return through
}

/** The access log line of the last call of a model. */
async function lastLine(model: string): Promise<Record<string, unknown>> {
  const line = await until(`the log line of ${model}`, () =>
    gateway
      .stdout()
      .split('\n')
      .findLast((text) => text.includes(`"${model}"`) && text.includes('"status"')),
  )
  return JSON.parse(line)
}

describe('the SDK of OpenAI', () => {
  it('reads the same moderations', async () => {
    const result = await same((client) =>
      client.moderations.create({ model: 'omni-moderation-latest', input: ['hello', 'an attack'] }),
    )
    expect(result.results.map(({ flagged }) => flagged)).toEqual([false, true])
  })

  it('reads the same image, whose tokens are counted and priced', async () => {
    const image = await same((client) => client.images.generate({ model: 'gpt-image-1', prompt: 'a lake' }))
    expect(image.usage).toEqual(imageUsage)
    const line = await lastLine('gpt-image-1')
    expect(JSON.stringify(line)).toContain('4160')
  })

  it('reads the same partial images of a stream', async () => {
    const events = await same(async (client) => {
      const stream = await client.images.generate({
        ...{ model: 'gpt-image-1', prompt: 'a lake', stream: true as const, partial_images: 2 },
      })
      const seen: unknown[] = []
      for await (const event of stream) seen.push(event)
      return seen
    })
    expect(events).toHaveLength(3)
  })

  it('reads the same speech, as bytes and as events', async () => {
    const spoken = { model: 'tts-1', voice: 'alloy', input: 'Good morning' }
    const bytes = await same(async (client) =>
      Buffer.from(await (await client.audio.speech.create(spoken)).arrayBuffer()).toString('base64'),
    )
    expect(bytes.length).toBeGreaterThan(200_000)
    const events = await same(async (client) =>
      (await client.audio.speech.create({ ...spoken, stream_format: 'sse' })).text(),
    )
    expect(events).toContain('speech.audio.done')
  })

  it('reads the same edits and variations of images', async () => {
    const files = () =>
      Promise.all(['a.png', 'b.png'].map((name) => toFile(picture, name, { type: 'image/png' })))
    const edited = { model: 'gpt-image-1', prompt: 'add a boat' }
    const whole = await same(async (client) => client.images.edit({ ...edited, image: await files() }))
    expect(whole.data?.[0]?.revised_prompt).toBe('add a boat: a.png image/png 90000,b.png image/png 90000')
    const events = await same(async (client) => {
      const seen: unknown[] = []
      const stream = await client.images.edit({ ...edited, image: await files(), stream: true })
      for await (const event of stream) seen.push(event)
      return seen
    })
    expect(events).toHaveLength(1)
    const varied = await same(async (client) =>
      client.images.createVariation({ model: 'dall-e-2', image: await toFile(picture, 'a.png') }),
    )
    expect(varied.data).toHaveLength(1)
  })

  it('reads the same transcripts in all formats', async () => {
    const file = () => toFile(picture, 'speech.mp3', { type: 'audio/mpeg' })
    for (const response_format of ['json', 'text', 'vtt', 'verbose_json'] as const) {
      await same(async (client) =>
        client.audio.transcriptions.create({
          model: 'gpt-4o-transcribe',
          file: await file(),
          response_format,
        }),
      )
    }
    const events = await same(async (client) => {
      const seen: unknown[] = []
      const stream = await client.audio.transcriptions.create({
        ...{ model: 'gpt-4o-transcribe', file: await file(), stream: true as const },
        include: ['logprobs'],
      })
      for await (const event of stream) seen.push(event)
      return seen
    })
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done' })
    await same(async (client) =>
      client.audio.translations.create({ model: 'gpt-4o-mini', file: await file() }),
    )
  })

  it('sends the texts of a form through guards and changes of the model', async () => {
    const file = await toFile(picture, 'speech.mp3', { type: 'audio/mpeg' })
    const spoken = { model: 'listening', file }
    const text = 'The file speech.mp3 audio/mpeg 90000 of <masked>'
    const { transcriptions } = clients.through.audio
    const whole = await transcriptions.create(spoken)
    expect(whole.text).toBe(text)
    expect(await formOf(media.seen.at(-1) as SeenRequest)).toEqual([
      ['model', 'whisper-1'],
      ['language', 'en'],
      ['file', 'speech.mp3 audio/mpeg 90000'],
    ])
    expect(await transcriptions.create({ ...spoken, response_format: 'text' })).toBe(`${text}\n`)
    const verbose = await transcriptions.create({ ...spoken, response_format: 'verbose_json' })
    expect(JSON.stringify(verbose)).not.toContain('Lovelace')
    let streamed = ''
    for await (const event of await transcriptions.create({ ...spoken, stream: true })) {
      if (event.type === 'transcript.text.delta') streamed += event.delta
      else if (event.type === 'transcript.text.done') expect(event.text).toBe(text)
    }
    expect(streamed).toBe(text)
    await expect(transcriptions.create({ ...spoken, prompt: 'SECRET' })).rejects.toMatchObject({
      status: 403,
    })
  })

  it('receives a refusal that names providers of the call', async () => {
    const refused = clients.through.moderations.create({ model: 'echo', input: 'hello' })
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'unsupported_endpoint' })
    await expect(refused).rejects.toThrow(/does not offer moderations.*openai/)
  })
})

describe('stored responses', () => {
  const request = { model: 'gpt-4o-mini', input: 'hi' }

  /** The result of all calls, without the ids, which differ. */
  async function conversation(client: OpenAI) {
    const first = await client.responses.create(request)
    const second = await client.responses.create({ ...request, previous_response_id: first.id })
    expect(second.previous_response_id).toBe(first.id)
    const streamed = await client.responses.create({
      ...request,
      previous_response_id: second.id,
      stream: true,
    })
    const events = await eventsOf(streamed)
    const [{ response: created }] = events as [{ response: { id: string } }]
    const read = await client.responses.retrieve(created.id)
    expect([read.id, second.id]).toEqual([created.id, read.previous_response_id])
    const again = await eventsOf(await client.responses.retrieve(read.id, { stream: true }))
    const items = await client.responses.inputItems.list(first.id)
    const cancelled = await client.responses.cancel(first.id)
    await client.responses.delete(second.id)
    await expect(client.responses.retrieve(second.id)).rejects.toMatchObject({ status: 404 })
    const texts = JSON.stringify([first, second, events, read, again, items.data, cancelled])
    const withoutOwner = texts.replaceAll(/"(msg_out)_[\w-]{22}"/g, '"$1"')
    return withoutOwner.replaceAll(/"resp_[\w-]+"/g, '"id"').replaceAll(/\\"resp_store\d+\\"/g, '')
  }

  it('are created, continued, read, cancelled and deleted as without the gateway', async () => {
    await same(conversation)
  })

  it('belong to the key that created them', async () => {
    const other = new OpenAI({ apiKey: otherKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
    const { id } = await clients.through.responses.create(request)
    const seen = media.seen.length
    const missing = { status: 404, code: 'response_not_found' }
    await expect(other.responses.retrieve(id)).rejects.toMatchObject(missing)
    await expect(other.responses.delete(id)).rejects.toMatchObject(missing)
    await expect(other.responses.inputItems.list(id)).rejects.toMatchObject(missing)
    await expect(clients.through.responses.retrieve('resp_store0')).rejects.toMatchObject(missing)
    const continued = other.responses.create({ ...request, previous_response_id: id })
    await expect(continued).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
    expect(media.seen).toHaveLength(seen)
  })

  it('pass the guards of their model again, and cost nothing again', async () => {
    const created = await clients.through.responses.create({ ...request, model: 'listening-chat' })
    const read = await clients.through.responses.retrieve(created.id)
    expect([created.output_text, read.output_text]).toEqual(['Hello <masked>', 'Hello <masked>'])
    const streamed = await eventsOf(await clients.through.responses.retrieve(created.id, { stream: true }))
    expect(JSON.stringify(streamed)).not.toContain('Lovelace')
    const tokens = /gen_ai_client_token_usage_sum\{[^}]*input"[^}]*listening-chat[^}]*\} (\d+)/
    expect(tokens.exec(await gateway.metrics())?.[1]).toBe('11')
  })
})

describe('the SDK of Cohere', () => {
  const documents = ['Carson City', 'Washington', 'Capitalism']

  it('reads the same ranking in both versions of the API', async () => {
    const one = { model: 'rerank-v3.5', query: 'capital', documents, topN: 2, returnDocuments: true }
    expect(await rerankers.through.one.rerank(one)).toEqual(await rerankers.direct.one.rerank(one))
    const two = { model: 'rerank-v3.5', query: 'capital', documents, topN: 2 }
    const ranked = await rerankers.through.two.rerank(two)
    expect(ranked).toEqual(await rerankers.direct.two.rerank(two))
    expect(ranked.results.map(({ index }) => index)).toEqual([2, 1])
    expect(cohere.seen.map(({ path }) => path)).toEqual([
      '/v1/rerank',
      '/v1/rerank',
      '/v2/rerank',
      '/v2/rerank',
    ])
  })

  it('reads the same embeddings', async () => {
    const request = {
      model: 'rerank-v3.5',
      texts: ['one', 'two'],
      inputType: 'search_document' as const,
      embeddingTypes: ['float' as const],
    }
    const embedded = await rerankers.through.two.embed(request)
    expect(embedded).toEqual(await rerankers.direct.two.embed(request))
    expect(embedded.embeddings.float).toHaveLength(2)
  })

  it('reads the same conversations, whole and streamed', async () => {
    const weather = { type: 'function' as const, function: { name: 'get_weather', parameters: {} } }
    const requests = [
      { messages: [{ role: 'user' as const, content: 'Hi' }] },
      { messages: [{ role: 'user' as const, content: 'Weather?' }], tools: [weather] },
      { messages: [{ role: 'user' as const, content: 'Cite' }] },
      { messages: [{ role: 'user' as const, content: 'Think' }], thinking: { type: 'enabled' as const } },
    ]
    for (const request of requests) {
      const asked = { model: 'rerank-v3.5', ...request }
      expect(await rerankers.through.two.chat(asked)).toEqual(await rerankers.direct.two.chat(asked))
      const streamed = await eventsOf(await rerankers.through.two.chatStream(asked))
      expect(streamed).toEqual(await eventsOf(await rerankers.direct.two.chatStream(asked)))
      expect(streamed.length).toBeGreaterThan(3)
    }
  })

  it('receives errors of the gateway in the shape of Cohere', async () => {
    const refused = rerankers.through.two.rerank({ model: 'unknown', query: 'q', documents })
    await expect(refused).rejects.toBeInstanceOf(CohereError)
    await expect(refused).rejects.toMatchObject({
      statusCode: 404,
      body: { message: 'Model not found', code: 'model_not_found' },
    })
  })
})

it('applies keys and guards to the input of every call', async () => {
  const headers = (key: string) => ({ 'content-type': 'application/json', authorization: `Bearer ${key}` })
  const post = (path: string, body: object, key = aliceKey) =>
    fetch(`${gateway.url}${path}`, { method: 'POST', headers: headers(key), body: JSON.stringify(body) })
  const denied = await post('/v1/images/generations', { model: 'gpt-image-1', prompt: 'x' }, ownKey)
  expect(denied.status).toBe(403)
  const seen = media.seen.length
  for (const [path, body] of [
    ['/v1/images/generations', { prompt: 'SECRET' }],
    ['/v1/audio/speech', { input: 'SECRET' }],
    ['/v1/moderations', { input: ['ok', 'SECRET'] }],
  ] as const) {
    expect((await post(path, { model: 'guarded-1', ...body })).status).toBe(403)
  }
  expect(media.seen).toHaveLength(seen)
})

async function eventsOf(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const event of stream) events.push(event)
  return events
}
