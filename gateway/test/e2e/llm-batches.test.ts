import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, aliceRecord, anthropicModel, openAiModel } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { anthropicKey } from '../support/mock-anthropic.ts'
import { mockBatches } from '../support/mock-batches.ts'
import { openAiKey } from '../support/mock-openai.ts'
import type { MockServer } from '../support/mock-server.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

let provider: MockServer
let gateway: Gateway

/** The official SDKs, without the gateway and through it, and with the key of another client. */
let openai: Record<'direct' | 'through' | 'other' | 'poor', OpenAI>
let anthropic: Record<'direct' | 'through' | 'other', Anthropic>

const otherKey = 'tg-canary-other-81d2'
const poorKey = 'tg-canary-poor-07c4'

beforeAll(async () => {
  provider = await mockBatches({ lifetime: 'file' })
  const secrets = (action: string) => ({ regex: { action, rules: [{ pattern: 'SECRET' }] } })
  gateway = await startGateway(
    {
      // The record of objects is reached from both threads.
      config: { database: { url: sqliteUrl() }, workerThreads: 2 },
      llm: {
        models: [
          openAiModel('gpt-test', provider.url),
          openAiModel('masked', provider.url, { guardrails: { request: [secrets('mask')] } }),
          openAiModel('rejecting', provider.url, { guardrails: { request: [secrets('reject')] } }),
          openAiModel('answering', provider.url, {
            guardrails: {
              response: [secrets('mask'), { regex: { action: 'reject', rules: [{ pattern: 'FORBIDDEN' }] } }],
            },
          }),
          openAiModel('ruled', provider.url, {
            authorization: {
              rules: [{ deny: 'llm.operation == "chat" && llmRequest.max_completion_tokens > 100' }],
            },
          }),
          anthropicModel('claude-test', provider.url),
          anthropicModel('claude-answering', provider.url, { guardrails: { response: [secrets('reject')] } }),
          anthropicModel('claude-masked', provider.url, { guardrails: { request: [secrets('mask')] } }),
        ],
        policies: {
          apiKey: {
            mode: 'strict',
            keys: [
              aliceRecord,
              { key: otherKey, metadata: { id: 'key-other' } },
              {
                key: poorKey,
                metadata: { id: 'key-poor' },
                budgets: [
                  { name: 'small', limit: { unit: 'Tokens', amount: 1000 }, window: { rolling: '366d' } },
                ],
              },
            ],
          },
        },
      },
    },
    { lifetime: 'file' },
  )
  const openAi = (apiKey: string, url: string) => new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })
  const claude = (apiKey: string, baseURL: string) => new Anthropic({ apiKey, baseURL, maxRetries: 0 })
  openai = {
    direct: openAi(openAiKey, provider.url),
    through: openAi(aliceKey, gateway.url),
    other: openAi(otherKey, gateway.url),
    poor: openAi(poorKey, gateway.url),
  }
  anthropic = {
    direct: claude(anthropicKey, provider.url),
    through: claude(aliceKey, gateway.url),
    other: claude(otherKey, gateway.url),
  }
})

const chat = (model: string, content: string, more = {}) => ({
  ...{ model, max_completion_tokens: 50 },
  messages: [{ role: 'user', content }],
  ...more,
})

function input(...bodies: object[]) {
  const lines = bodies.map((body, index) =>
    JSON.stringify({ custom_id: `r${index}`, method: 'POST', url: '/v1/chat/completions', body }),
  )
  return toFile(Buffer.from(`${lines.join('\n')}\n`), 'in.jsonl')
}

const upload = async (client: OpenAI, ...bodies: object[]) =>
  client.files.create({ purpose: 'batch', file: await input(...bodies) })

const start = (client: OpenAI, input_file_id: string) =>
  client.batches.create({ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' })

/** Ids and the address of the service differ. */
function withoutIds(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll(/(file[-_]|batch_|msgbatch_|upload_|part_)[\w-]{20,}/g, '$1')
    .replaceAll(/http:[^"]*:\d+/g, '')
}

describe('files and batches of OpenAI', () => {
  async function conversation(client: OpenAI): Promise<string> {
    const file = await upload(client, chat('gpt-test', 'one'), chat('gpt-test', 'two'))
    const created = await start(client, file.id)
    const done = await client.batches.retrieve(created.id)
    expect([created.input_file_id, done.input_file_id, done.id]).toEqual([file.id, file.id, created.id])
    const output = await (await client.files.content(done.output_file_id ?? '')).text()
    const described = await client.files.retrieve(done.output_file_id ?? '')
    expect(described.id).toBe(done.output_file_id)
    const content = await (await client.files.content(file.id)).text()
    const cancelled = await client.batches.cancel(created.id)
    const deleted = await client.files.delete(file.id)
    await expect(client.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
    return withoutIds([file, created, done, output, described, content, cancelled, deleted])
  }

  it('are created, read, cancelled and deleted as without the gateway', async () => {
    expect(await conversation(openai.through)).toBe(await conversation(openai.direct))
  })

  it('of other purposes are stored at the only provider with files', async () => {
    const store = (client: OpenAI) =>
      client.files.create({ purpose: 'user_data', file: new File(['abc'], 'a.txt') })
    const file = await store(openai.through)
    expect(withoutIds(file)).toBe(withoutIds(await store(openai.direct)))
    expect(await (await openai.through.files.content(file.id)).text()).toBe('abc')
  })

  it('belong to the key that created them', async () => {
    const { through, other } = openai
    const file = await upload(through, chat('gpt-test', 'one'))
    const batch = await start(through, file.id)
    const { output_file_id: output } = await through.batches.retrieve(batch.id)
    const seen = provider.seen.length
    const noFile = { status: 404, code: 'file_not_found' }
    for (const id of [file.id, output ?? '']) {
      await expect(other.files.retrieve(id)).rejects.toMatchObject(noFile)
      await expect(other.files.content(id)).rejects.toMatchObject(noFile)
      await expect(other.files.delete(id)).rejects.toMatchObject(noFile)
    }
    const noBatch = { status: 404, code: 'batch_not_found' }
    await expect(other.batches.retrieve(batch.id)).rejects.toMatchObject(noBatch)
    await expect(other.batches.cancel(batch.id)).rejects.toMatchObject(noBatch)
    await expect(start(other, file.id)).rejects.toMatchObject({ status: 400, code: 'file_not_found' })
    expect(provider.seen).toHaveLength(seen)
  })

  it('pass rules and guards of requests with each line', async () => {
    const { through } = openai
    const file = await upload(through, chat('masked', 'a SECRET'), chat('masked', 'b'))
    const content = await (await through.files.content(file.id)).text()
    expect(content).not.toContain('SECRET')
    expect(content.match(/"custom_id"/g)).toHaveLength(2)
    const seen = provider.seen.length
    const ok = chat('rejecting', 'b')
    await expect(upload(through, ok, chat('rejecting', 'a SECRET'))).rejects.toMatchObject({ status: 403 })
    await expect(
      upload(through, chat('ruled', 'a'), chat('ruled', 'a', { max_completion_tokens: 101 })),
    ).rejects.toMatchObject({
      status: 403,
      code: 'authorization_failed',
    })
    expect(provider.seen).toHaveLength(seen)
    expect((await upload(through, chat('ruled', 'a'))).object).toBe('file')
  })

  it('pass guards of responses with each result', async () => {
    const { through } = openai
    const texts = ['a SECRET', 'a FORBIDDEN word', 'ok']
    const file = await upload(through, ...texts.map((text) => chat('answering', text)))
    const batch = await start(through, file.id)
    const { output_file_id: output } = await through.batches.retrieve(batch.id)
    const content = await (await through.files.content(output ?? '')).text()
    const [masked, refused, unchanged] = content
      .trim()
      .split('\n')
      .map((line): unknown => JSON.parse(line))
    const answerOf = (text: string) => ({ response: { body: { choices: [{ message: { content: text } }] } } })
    expect(masked).toMatchObject(answerOf('answering: a <masked>'))
    expect(refused).toMatchObject({
      custom_id: 'r1',
      response: null,
      error: { code: 'guardrail_intervention' },
    })
    expect(unchanged).toMatchObject(answerOf('answering: ok'))
    expect(content).not.toMatch(/SECRET|FORBIDDEN/)
    const named = { type: 'file' as const, file: { file_id: output ?? '' } }
    await expect(
      through.chat.completions.create({ model: 'gpt-test', messages: [{ role: 'user', content: [named] }] }),
    ).rejects.toMatchObject({ status: 400, code: 'file_not_found' })
  })

  it('are charged to budgets when a batch is created', async () => {
    const { poor } = openai
    const large = await upload(poor, chat('gpt-test', 'one', { max_completion_tokens: 2000 }))
    await expect(start(poor, large.id)).rejects.toMatchObject({ status: 429 })
    const small = await upload(poor, chat('gpt-test', 'one', { max_completion_tokens: 600 }))
    const batch = await start(poor, small.id)
    expect((await poor.batches.retrieve(batch.id)).status).toBe('completed')
    await expect(start(poor, small.id)).rejects.toMatchObject({ status: 429 })
    await until('the tokens of the batch', async () => {
      const labels = { gen_ai_token_type: 'output', gen_ai_request_model: 'gpt-test' }
      return metricValue(await gateway.metrics(), 'gen_ai_client_token_usage_sum', labels) ? true : undefined
    })
  })
})

describe('uploads in parts', () => {
  const about = { purpose: 'user_data', filename: 'a.txt', mime_type: 'text/plain' } as const
  const contents = [Buffer.alloc(1_500_000, 'a'), Buffer.from('b')]
  const bytes = 1_500_001

  async function addParts(client: OpenAI, id: string) {
    const part = (content: Buffer) =>
      client.uploads.parts.create(id, { data: new File([new Uint8Array(content)], 'blob') })
    return Promise.all(contents.map(part))
  }

  it('are created, completed and cancelled as without the gateway', async () => {
    const conversation = async (client: OpenAI) => {
      const created = await client.uploads.create({ ...about, bytes })
      const parts = await addParts(client, created.id)
      expect(parts.map(({ upload_id }) => upload_id)).toEqual([created.id, created.id])
      const done = await client.uploads.complete(created.id, { part_ids: parts.map(({ id }) => id) })
      const file = done.file?.id ?? ''
      const content = await (await client.files.content(file)).text()
      const described = await client.files.retrieve(file)
      expect([content, described.id]).toEqual([contents.join(''), file])
      const other = await client.uploads.create({ ...about, bytes })
      return withoutIds([created, parts, done, described, await client.uploads.cancel(other.id)])
    }
    expect(await conversation(openai.through)).toBe(await conversation(openai.direct))
    const [listed] = (await openai.through.files.list({ purpose: 'user_data', limit: 1 })).data
    expect(listed?.bytes).toBe(bytes)
  })

  it('belong to the key that created them, and have no requests of batches', async () => {
    const { through, other } = openai
    const created = await through.uploads.create({ ...about, bytes })
    const [part] = await addParts(through, created.id)
    const second = await through.uploads.create({ ...about, bytes })
    const own = await other.uploads.create({ ...about, bytes })
    const seen = provider.seen.length
    const noUpload = { status: 404, code: 'upload_not_found' }
    await expect(other.uploads.cancel(created.id)).rejects.toMatchObject(noUpload)
    await expect(addParts(other, created.id)).rejects.toMatchObject(noUpload)
    const part_ids = [part?.id ?? '']
    const noPart = { status: 400, code: 'part_not_found' }
    await expect(other.uploads.complete(own.id, { part_ids })).rejects.toMatchObject(noPart)
    await expect(through.uploads.complete(second.id, { part_ids })).rejects.toMatchObject(noPart)
    await expect(through.uploads.create({ ...about, purpose: 'batch', bytes })).rejects.toThrow(
      /requests of a batch/,
    )
    expect(provider.seen).toHaveLength(seen)
  })
})

describe('batches of Anthropic', () => {
  const request = (custom_id: string, content: string, model = 'claude-test') => ({
    custom_id,
    params: { model, max_tokens: 50, messages: [{ role: 'user' as const, content }] },
  })

  async function resultsOf(client: Anthropic, id: string): Promise<unknown[]> {
    const found: unknown[] = []
    for await (const result of await client.messages.batches.results(id)) found.push(result)
    return found
  }

  it('are created, read, cancelled and deleted as without the gateway', async () => {
    const conversation = async (client: Anthropic) => {
      const { batches } = client.messages
      const created = await batches.create({ requests: [request('a', 'one'), request('b', 'two')] })
      const ended = await batches.retrieve(created.id)
      expect(ended.id).toBe(created.id)
      const results = await resultsOf(client, created.id)
      expect(results).toHaveLength(2)
      const cancelled = await batches.cancel(created.id)
      const deleted = await batches.delete(created.id)
      return withoutIds([created, ended, results, cancelled, deleted])
    }
    expect(await conversation(anthropic.through)).toBe(await conversation(anthropic.direct))
  })

  it('belong to the key that created them', async () => {
    const { id } = await anthropic.through.messages.batches.create({ requests: [request('a', 'one')] })
    const { batches } = anthropic.other.messages
    await expect(batches.retrieve(id)).rejects.toMatchObject({ status: 404, type: 'not_found_error' })
    await expect(batches.cancel(id)).rejects.toMatchObject({ status: 404 })
    await expect(batches.delete(id)).rejects.toMatchObject({ status: 404 })
    const results = `${gateway.url}/v1/messages/batches/${id}/results`
    expect((await fetch(results, { headers: { 'x-api-key': otherKey } })).status).toBe(404)
  })

  it('pass guards of responses with each result', async () => {
    const requests = [request('a', 'a SECRET', 'claude-answering'), request('b', 'b', 'claude-answering')]
    const { id } = await anthropic.through.messages.batches.create({ requests })
    const results = await resultsOf(anthropic.through, id)
    expect(results).toMatchObject([
      { custom_id: 'a', result: { type: 'errored' } },
      { custom_id: 'b', result: { type: 'succeeded' } },
    ])
    expect(JSON.stringify(results)).not.toContain('SECRET')
  })

  it('pass guards with each request', async () => {
    const requests = [request('a', 'a SECRET', 'claude-masked'), request('b', 'b', 'claude-masked')]
    const { id } = await anthropic.through.messages.batches.create({ requests })
    const results = JSON.stringify(await resultsOf(anthropic.through, id))
    expect(results).toContain('claude-masked: b')
    expect(results).not.toContain('SECRET')
  })
})

describe('files of Anthropic', () => {
  const betas = ['files-api-2025-04-14']

  const upload = (client: Anthropic) =>
    client.beta.files.upload({ file: new File(['the text'], 'a.txt', { type: 'text/plain' }), betas })

  const ask = (client: Anthropic, id: string, model = 'claude-test') =>
    client.beta.messages.create({
      ...{ model, max_tokens: 50, betas },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'file', file_id: id } },
            { type: 'container_upload', file_id: id },
          ],
        },
      ],
    })

  it('are created, read, named in messages and deleted as without the gateway', async () => {
    const conversation = async (client: Anthropic) => {
      const file = await upload(client)
      const described = await client.beta.files.retrieveMetadata(file.id, { betas })
      expect(described.id).toBe(file.id)
      const content = await (await client.beta.files.download(file.id, { betas })).text()
      const { content: answer } = await ask(client, file.id)
      const deleted = await client.beta.files.delete(file.id, { betas })
      await expect(client.beta.files.retrieveMetadata(file.id, { betas })).rejects.toMatchObject({
        status: 404,
        type: 'not_found_error',
      })
      return withoutIds([file, described, content, answer, deleted])
    }
    const through = await conversation(anthropic.through)
    expect(through).toBe(await conversation(anthropic.direct))
    expect(through).toContain('the text, the text')
  })

  it('belong to the key that created them', async () => {
    const { through, other } = anthropic
    const { id } = await upload(through)
    const seen = provider.seen.length
    const { files } = other.beta
    await expect(files.retrieveMetadata(id, { betas })).rejects.toMatchObject({
      status: 404,
      type: 'not_found_error',
    })
    await expect(files.download(id, { betas })).rejects.toMatchObject({ status: 404 })
    await expect(files.delete(id, { betas })).rejects.toMatchObject({ status: 404 })
    await expect(ask(other, id)).rejects.toMatchObject({ status: 400 })
    await expect(ask(through, 'file_000000000000000000000001')).rejects.toMatchObject({ status: 400 })
    await expect(ask(through, id, 'gpt-test')).rejects.toMatchObject({ status: 400 })
    // The two APIs have the same paths.
    await expect(openai.through.files.retrieve(id)).rejects.toMatchObject({ status: 404 })
    expect(provider.seen).toHaveLength(seen)
  })
})

describe('lists', () => {
  /** All objects, of pages with two of them, each once. */
  async function all<T extends { id: string }>(pages: AsyncIterable<T>): Promise<T[]> {
    const found: T[] = []
    for await (const one of pages) found.push(one)
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length)
    return found
  }

  it('of files have those of the client, as without the gateway', async () => {
    const purpose = 'vision'
    const store = async (client: OpenAI, name: string) =>
      (await client.files.create({ purpose, file: new File(['abc'], name) })).id
    const { through, other, direct } = openai
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.unshift(await store(through, name))
    const listed = await all(through.files.list({ purpose, limit: 2 }))
    expect(listed.map(({ id }) => id)).toEqual(ids)
    expect(withoutIds(listed)).toBe(withoutIds(await all(direct.files.list({ purpose, limit: 2 }))))
    expect((await other.files.list({ purpose })).data).toEqual([])
    const own = await store(other, 'd')
    expect((await other.files.list({ purpose })).data.map(({ id }) => id)).toEqual([own])
    await expect(other.files.list({ after: ids[0] ?? '' })).rejects.toMatchObject({ status: 400 })
    // A list may be continued while its files are deleted.
    for await (const { id } of through.files.list({ purpose, limit: 1 })) await through.files.delete(id)
    expect((await through.files.list({ purpose })).data).toEqual([])
    const content = await upload(through, chat('gpt-test', 'one'))
    expect((await through.files.list({ purpose: 'batch', limit: 1 })).data[0]?.id).toBe(content.id)
  })

  it('of batches have those of the client', async () => {
    const { poor, other } = openai
    const before = (await all(poor.batches.list({ limit: 1 }))).length
    const file = await upload(other, chat('gpt-test', 'one'))
    const batches = [await start(other, file.id), await start(other, file.id)]
    const listed = await all(other.batches.list({ limit: 1 }))
    expect(listed.map(({ id }) => id)).toEqual(batches.map(({ id }) => id).toReversed())
    expect(listed.map(({ input_file_id }) => input_file_id)).toEqual([file.id, file.id])
    expect(await all(poor.batches.list())).toHaveLength(before)
  })

  it('of batches and files of Anthropic have those of the client', async () => {
    const { through, other } = anthropic
    const betas = ['files-api-2025-04-14']
    const params = {
      model: 'claude-test',
      max_tokens: 50,
      messages: [{ role: 'user' as const, content: 'a' }],
    }
    const requests = [{ custom_id: 'a', params }]
    expect(await all(other.messages.batches.list())).toEqual([])
    const ids: string[] = []
    for (const _ of [1, 2, 3]) ids.unshift((await other.messages.batches.create({ requests })).id)
    expect((await all(other.messages.batches.list({ limit: 2 }))).map(({ id }) => id)).toEqual(ids)
    const newest = await other.messages.batches.list({ before_id: ids[2] ?? '', limit: 1 })
    expect([newest.data[0]?.id, newest.has_more]).toEqual([ids[1], true])
    const files = (client: Anthropic) => all(client.beta.files.list({ limit: 1, betas }))
    for (const { id } of await files(through)) await through.beta.files.delete(id, { betas })
    for (const name of ['a', 'b'])
      await through.beta.files.upload({ file: new File(['x'], name, { type: 'text/plain' }), betas })
    expect((await files(through)).map(({ filename }) => filename)).toEqual(['b', 'a'])
    expect(await files(other)).toEqual([])
  })
})
