import { describe, expect, it } from 'vitest'
import {
  call,
  type FixtureCall,
  type FixtureGateway,
  fixtureGateway,
  jsonReply,
  open,
  streamReply,
} from '../../../../test/fixtures/llm.ts'
import { readAll } from '../../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import type { LlmConfig } from '../config/config.ts'
import { splitArray, splitLines } from './split-items.ts'

const entry = (name: string, host = 'one', params = {}) => ({
  name,
  provider: 'openai' as const,
  params: { apiKey: 'k', baseUrl: `https://${host}.test/v1`, ...params },
})

const line = (body: object, more: object = {}) =>
  JSON.stringify({ custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body, ...more })

const chat = (model = 'gpt', more: object = {}) => ({
  model,
  messages: [{ role: 'user', content: 'hello' }],
  ...more,
})

/** The upload of a file. */
function upload(file: string, { purpose = 'batch', headers = {} } = {}): FixtureCall {
  const head = 'Content-Disposition: form-data; name='
  const parts = [
    `--b1\r\n${head}"file"; filename="in.jsonl"\r\n\r\n${file}`,
    `--b1\r\n${head}"purpose"\r\n\r\n${purpose}`,
  ]
  return {
    path: '/v1/files',
    headers: { 'content-type': 'multipart/form-data; boundary=b1', ...headers },
    body: Buffer.from(`${parts.join('\r\n')}\r\n--b1--\r\n`),
  }
}

const json = { 'content-type': 'application/json' }

/** A provider that stores one file and one batch. */
function answer({ path, method }: OutgoingRequest): Reply {
  if (path.endsWith('/content')) return { status: 200, headers: {}, body: Buffer.from('{"id":"file-up1"}\n') }
  if (path.startsWith('/v1/files'))
    return jsonReply({ id: 'file-up1', object: 'file', ...(method === 'DELETE' && { deleted: true }) })
  const files = { input_file_id: 'file-up1', output_file_id: 'file-out1', error_file_id: null }
  return jsonReply({ id: 'batch_up1', object: 'batch', ...files })
}

const plain: LlmConfig = { models: [entry('gpt'), entry('alias', 'one', { model: 'gpt-real' })] }

const gatewayOf = (config: LlmConfig = plain) => fixtureGateway(config, answer)

/** The file that the provider received. */
function sentFile({ sent }: FixtureGateway): string {
  const body = Buffer.from(sent.at(-1)?.body as Uint8Array).toString()
  return /filename="in.jsonl"\r\n\r\n(.*?)\r\n--/s.exec(body)?.[1] ?? ''
}

async function uploaded(gateway: FixtureGateway, request: FixtureCall) {
  const { status, text } = await call(gateway, request)
  const value = JSON.parse(text)
  return { status, id: value.id, error: value.error?.message }
}

describe('batches of other services', () => {
  const azure = (azureApiVersion?: string) => ({
    name: 'mine',
    provider: 'azure' as const,
    params: {
      ...{
        apiKey: 'k',
        model: 'my-deployment',
        azureResourceName: 'contoso',
        azureResourceType: 'openAI' as const,
      },
      ...(azureApiVersion && { azureApiVersion }),
    },
  })
  const preset = (provider: 'groq' | 'deepinfra' | 'cerebras') => ({
    ...{ name: 'mine', provider, params: { apiKey: 'k', model: 'my-deployment' } },
  })

  it.each([
    ['Azure OpenAI', azure(), 'https://contoso.openai.azure.com', '/openai/v1/'],
    ['Azure OpenAI by date', azure('2024-10-21'), 'https://contoso.openai.azure.com', '/openai/'],
    ['Groq', preset('groq'), 'https://api.groq.com', '/openai/v1/'],
    ['DeepInfra', preset('deepinfra'), 'https://api.deepinfra.com', '/v1/openai/'],
    ['Cerebras', preset('cerebras'), 'https://api.cerebras.ai', '/v1/'],
  ])('are created at %s with the name of the model there', async (_title, model, origin, base) => {
    const gateway = fixtureGateway({ models: [model] }, ({ path }) =>
      jsonReply(
        path.includes('/files') ? { id: 'file-up1' } : { id: 'batch_up1', input_file_id: 'file-up1' },
      ),
    )
    const { id } = await uploaded(gateway, upload(line(chat('mine'))))
    expect(JSON.parse(sentFile(gateway)).body.model).toBe('my-deployment')
    const body = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    expect((await call(gateway, { path: '/v1/batches', headers: json, body })).status).toBe(200)
    expect(gateway.sent.map((sent) => sent.origin + sent.path.split('?')[0])).toEqual(
      ['files', 'batches'].map((name) => origin + base + name),
    )
  })

  it.each(['mistral', 'togetherai', 'gemini'] as const)('are refused for %s', async (provider) => {
    const gateway = fixtureGateway({ models: [{ name: 'mine', provider, params: { apiKey: 'k' } }] }, answer)
    const { status, error } = await uploaded(gateway, upload(line(chat('mine'))))
    expect([status, error]).toEqual([
      400,
      expect.stringContaining('does not offer batches, which are not translated'),
    ])
    expect(gateway.sent).toEqual([])
  })
})

describe('a file of requests', () => {
  it('is forwarded unchanged if no model has another name', async () => {
    const gateway = gatewayOf()
    const file = `${line(chat())}\n{"custom_id": "b", "method": "POST", "url": "/v1/chat/completions", "body": ${JSON.stringify(chat())} }\n`
    const { status, id } = await uploaded(gateway, upload(file))
    expect([status, id]).toEqual([200, expect.stringMatching(/^file-[\w-]{100,}$/)])
    expect(sentFile(gateway)).toBe(file)
  })

  it('receives the changes of single calls', async () => {
    const models = [
      {
        ...entry('alias', 'one', { model: 'gpt-real' }),
        overrides: { temperature: 0 },
        defaults: { top_p: 1 },
      },
    ]
    const gateway = gatewayOf({ models })
    await call(
      gateway,
      upload(`${line(chat('alias', { temperature: 2 }))}\r\n\r\n${line(chat('alias', { top_p: 0.5 }))}`),
    )
    const bodies = sentFile(gateway)
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text).body)
    expect(bodies).toMatchObject([
      { model: 'gpt-real', temperature: 0, top_p: 1 },
      { model: 'gpt-real', temperature: 0, top_p: 0.5 },
    ])
  })

  it('has no carriage returns, which some servers read as line ends', async () => {
    const gateway = gatewayOf()
    const evil = line(chat('other'))
    await call(gateway, upload(line(chat('gpt', { metadata: [0] })).replace('[0]', `[\r${evil}\r]`)))
    expect(sentFile(gateway).split(/[\r\n]+/)).toEqual([expect.stringContaining(`[ ${evil} ]`), ''])
  })

  it.each<[string, string, number, RegExp]>([
    ['an unknown model', line(chat('other')), 404, /Model not found/],
    ['another model in a later line', `${line(chat())}\n${line(chat('alias'))}`, 400, /one model: "gpt"/],
    ['no model', line({ messages: [] }), 400, /model must be/],
    ['a duplicate model', line(chat()).replace('"model"', '"model":"gpt","model"'), 400, /duplicate key/],
    ['a model in two cases', line(chat('gpt', { Model: 'x' })), 400, /differs only in case/],
    ['unknown members', line(chat(), { Body: chat('alias') }), 400, /unknown member "Body"/],
    ['another url', line(chat(), { url: '/v1/files' }), 400, /url must be one of/],
    ['several urls', `${line(chat())}\n${line(chat(), { url: '/v1/completions' })}`, 400, /one url/],
    ['another method', line(chat(), { method: 'GET' }), 400, /method must be POST/],
    ['no id', line(chat(), { custom_id: 1 }), 400, /custom_id/],
    ['a stream', line(chat('gpt', { stream: true })), 400, /stream must be false/],
    ['text that is no JSON', 'model: gpt', 400, /not valid JSON/],
    ['no requests', '\n', 400, /1 to 100000 requests/],
  ])('with %s is refused', async (_, file, status, message) => {
    const gateway = gatewayOf()
    const outcome = await uploaded(gateway, upload(file))
    expect([outcome.status, outcome.error]).toEqual([status, expect.stringMatching(message)])
    expect(gateway.sent).toHaveLength(0)
  })

  it.each([
    ['lines', splitLines(Buffer.from('1\n'.repeat(150_000)))],
    ['items', splitArray(Buffer.from(`[${'1,'.repeat(150_000)}1]`))],
  ])('with too many %s is split up to the limit only', (_, split) => {
    let step = split.next()
    while (step.done !== true) step = split.next()
    expect(step.value).toHaveLength(100_001)
  })

  it('names the position of a refused request', async () => {
    const { headers, text } = await call(
      gatewayOf(),
      upload(`${line(chat())}\n\n${line(chat('gpt', { stream: true }))}`),
    )
    expect(headers['x-tollgate-batch-request']).toBe('2')
    expect(JSON.parse(text).error.message).toBe('request 2: stream must be false in a batch')
  })

  it('is refused for models that the key does not allow, also as fallbacks', async () => {
    const gateway = gatewayOf()
    const mayUseModel = (model: string) => model === 'gpt'
    for (const body of [chat('alias'), chat('gpt', { models: ['alias'] })])
      expect((await call(gateway, { ...upload(line(body)), mayUseModel })).status).toBe(403)
    expect((await call(gateway, { ...upload(line(chat())), mayUseModel })).status).toBe(200)
  })

  it('is refused for calls that the provider does not have', async () => {
    const custom = {
      provider: { custom: { formats: [{ type: 'messages' }, { type: 'files' }, { type: 'batches' }] } },
    }
    const gateway = gatewayOf({ models: [{ ...entry('gpt'), ...(custom as object) }] })
    const outcome = await uploaded(gateway, upload(line(chat())))
    expect([outcome.status, outcome.error]).toEqual([
      400,
      'model "gpt" does not offer chat completions, and batches are not translated: use another model',
    ])
    const preset = { provider: 'deepseek' as const }
    const other = await uploaded(
      gatewayOf({ models: [{ ...entry('gpt'), ...preset }] }),
      upload(line(chat())),
    )
    expect(other.error).toContain(
      'does not offer batches, which are not translated: use a model of another provider, such as',
    )
  })

  it('has one target, also with a virtual model', async () => {
    const targets = [{ model: 'a', when: 'llmRequest.messages[0].content == "hello"' }, { model: 'b' }]
    const virtualModels = [{ name: 'v', routing: { conditional: { targets } } }]
    const gateway = gatewayOf({ models: [entry('a'), entry('b', 'two')], virtualModels })
    expect((await uploaded(gateway, upload(line(chat('v'))))).status).toBe(200)
    const other = line({ model: 'v', messages: [{ role: 'user', content: 'bye' }] })
    const outcome = await uploaded(gateway, upload(`${line(chat('v'))}\n${other}`))
    expect([outcome.status, outcome.error]).toEqual([400, expect.stringContaining('one entry of llm.models')])
  })
})

describe('a file of another purpose', () => {
  it('goes to the only provider with files', async () => {
    const gateway = gatewayOf({ models: [entry('gpt'), { name: 'claude', provider: 'anthropic' }] })
    expect((await call(gateway, upload('x', { purpose: 'user_data' }))).status).toBe(200)
    expect(gateway.sent[0]?.origin).toBe('https://one.test')
  })

  it('goes to the provider of the model in the header, which is not forwarded', async () => {
    const gateway = gatewayOf({ models: [entry('a'), entry('b', 'two')] })
    const options = { purpose: 'user_data', headers: { 'x-tollgate-model': 'b' } }
    expect((await call(gateway, upload('x', options))).status).toBe(200)
    expect(gateway.sent[0]?.origin).toBe('https://two.test')
    expect(gateway.sent[0]?.headers['x-tollgate-model']).toBeUndefined()
    const unclear = await uploaded(gateway, upload('x', { purpose: 'user_data' }))
    expect([unclear.status, unclear.error]).toEqual([400, expect.stringContaining('x-tollgate-model')])
    const denied = { ...upload('x', options), mayUseModel: (model: string) => model === 'a' }
    expect((await call(gateway, denied)).status).toBe(403)
  })

  it('is no input of a batch', async () => {
    const gateway = gatewayOf()
    const { id } = await uploaded(gateway, upload(line(chat()), { purpose: 'user_data' }))
    const body = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const created = await uploaded(gateway, { path: '/v1/batches', headers: json, body })
    expect([created.status, created.error]).toEqual([400, expect.stringContaining('purpose batch')])
    expect(gateway.sent).toHaveLength(1)
  })
})

describe('a batch', () => {
  const requests = `${line(chat('gpt', { max_tokens: 100 }))}\n${line(chat('gpt', { max_tokens: 20 }))}`

  async function created(gateway: FixtureGateway, file = requests) {
    const { id } = await uploaded(gateway, upload(file))
    const body = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const outcome = await call(gateway, { path: '/v1/batches', headers: json, body })
    return { file: id, outcome, batch: JSON.parse(outcome.text) }
  }

  it('has ids of the gateway only, which are the same in each response', async () => {
    const gateway = gatewayOf()
    const { file, outcome, batch } = await created(gateway)
    expect(outcome.status).toBe(200)
    expect(JSON.parse(Buffer.from(gateway.sent[1]?.body as Uint8Array).toString()).input_file_id).toBe(
      'file-up1',
    )
    expect(batch.input_file_id).toBe(file)
    expect(batch.error_file_id).toBeNull()
    expect(outcome.text).not.toContain('up1')
    const read = await call(gateway, { method: 'GET', path: `/v1/batches/${batch.id}` })
    expect(read.text).toBe(outcome.text)
    const output = await call(gateway, { method: 'GET', path: `/v1/files/${batch.output_file_id}/content` })
    expect(output.text).toBe('{"id":"file-up1"}\n')
    await call(gateway, { path: `/v1/batches/${batch.id}/cancel` })
    await call(gateway, { method: 'DELETE', path: `/v1/files/${file}` })
    expect(gateway.sent.slice(2).map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /v1/batches/batch_up1',
      'GET /v1/files/file-out1/content',
      'POST /v1/batches/batch_up1/cancel',
      'DELETE /v1/files/file-up1',
    ])
  })

  it('is charged at its creation: input and output limits of all requests', async () => {
    const gateway = gatewayOf()
    const { outcome } = await created(gateway)
    const { usage } = outcome.exchange.facts
    expect(usage).toMatchObject({ outputTokens: 120, estimated: true })
    expect(usage?.inputTokens).toBeGreaterThan(4)
    expect(gateway.metered.filter((text) => text.startsWith('tokens'))).toHaveLength(1)
  })

  it('is charged the results that a download has read before its end, never a range', async () => {
    const usage = { prompt_tokens: 9000, completion_tokens: 1000, total_tokens: 10_000 }
    const result = `${JSON.stringify({ custom_id: 'a', response: { status_code: 200, body: { usage } } })}\n`
    const gateway = fixtureGateway(plain, (request) =>
      request.path.endsWith('/content') ? streamReply([result], new Error('cut')) : answer(request),
    )
    const { batch, outcome } = await created(gateway)
    const { inputTokens = 0, outputTokens = 0 } = outcome.exchange.facts.usage ?? {}
    const read = { method: 'GET', path: `/v1/files/${batch.output_file_id}/content` }
    const { reply, exchange } = await open(gateway, { ...read, headers: { range: 'bytes=0-99' } })
    await expect(readAll(reply.body, 10_000, 'internal')).rejects.toThrow('cut')
    gateway.llm.llmRequest.onEnd?.(exchange)
    expect(gateway.sent.at(-1)?.headers['range']).toBeUndefined()
    expect(exchange.facts.usage?.totalTokens).toBe(10_000 - inputTokens - outputTokens)
    expect(exchange.facts.llm?.settles).toBeDefined()
  })

  it('is not charged if the provider refuses it', async () => {
    const gateway = fixtureGateway(plain, (request) =>
      request.path.endsWith('/batches') ? jsonReply({ error: { message: 'no' } }, 400) : answer(request),
    )
    const { outcome } = await created(gateway)
    expect([outcome.status, outcome.exchange.facts.usage]).toEqual([400, undefined])
  })

  it('has the call of its requests', async () => {
    const gateway = gatewayOf()
    const { id } = await uploaded(gateway, upload(requests))
    const body = { input_file_id: id, endpoint: '/v1/embeddings', completion_window: '24h' }
    expect((await uploaded(gateway, { path: '/v1/batches', headers: json, body })).error).toContain(
      'endpoint must be',
    )
  })

  it.each(['file-up1', 'file-', 'batch_up1', ''])('of the file %s is refused', async (id) => {
    const gateway = gatewayOf()
    const body = { input_file_id: id, endpoint: '/v1/chat/completions' }
    const { status, text } = await call(gateway, { path: '/v1/batches', headers: json, body })
    expect([status, JSON.parse(text).error.code]).toEqual([400, 'file_not_found'])
  })

  it('with requests or results at another place is refused', async () => {
    const gateway = gatewayOf()
    const { id } = await uploaded(gateway, upload(requests))
    for (const name of ['input_blob', 'output_folder', 'requests']) {
      const body = { input_file_id: id, endpoint: '/v1/chat/completions', [name]: 'x' }
      const { status, error } = await uploaded(gateway, { path: '/v1/batches', headers: json, body })
      expect([status, error]).toEqual([400, expect.stringContaining(`${name} is not supported`)])
    }
    expect(gateway.sent).toHaveLength(1)
  })

  it('is not found under ids of the provider, of other objects and of other methods', async () => {
    const gateway = gatewayOf()
    const { batch, file } = await created(gateway)
    const status = async (method: string, path: string) => (await call(gateway, { method, path })).status
    expect(await status('GET', '/v1/batches/batch_up1')).toBe(404)
    expect(await status('GET', `/v1/batches/${file}`)).toBe(404)
    expect(await status('GET', `/v1/files/${batch.id}`)).toBe(404)
    expect(await status('GET', `/v1/messages/batches/${batch.id}`)).toBe(404)
    expect(await status('DELETE', `/v1/batches/${batch.id}`)).toBe(405)
    expect(await status('GET', `/v1/batches/${batch.id}/results`)).toBe(404)
    expect(await status('GET', '/v1/batches')).toBe(400)
    expect(await status('GET', '/v1/files')).toBe(400)
    expect(gateway.sent).toHaveLength(2)
  })
})

describe('a batch of messages', () => {
  const models = [
    { name: 'claude', provider: 'anthropic' as const, params: { apiKey: 'k', model: 'claude-real' } },
    entry('gpt'),
  ]
  const params = { model: 'claude', max_tokens: 50, messages: [{ role: 'user', content: 'a "],[{" b' }] }
  const create = (requests: unknown, more = {}): FixtureCall => ({
    path: '/v1/messages/batches',
    headers: { ...json, host: 'x' },
    body: { requests, ...more },
  })
  const gatewayFor = () =>
    fixtureGateway({ models }, () =>
      jsonReply({
        id: 'msgbatch_up1',
        type: 'message_batch',
        results_url: 'https://api.anthropic.com/v1/messages/batches/msgbatch_up1/results',
      }),
    )

  it('receives the changes of single calls, and an address of the gateway for its results', async () => {
    const gateway = gatewayFor()
    const { status, text, exchange } = await call(
      gateway,
      create([1, 2].map((id) => ({ custom_id: `r${id}`, params }))),
    )
    const { id, results_url: url } = JSON.parse(text)
    expect([status, url]).toEqual([
      200,
      expect.stringMatching(new RegExp(`^http://[^/]+/v1/messages/batches/${id}/results$`)),
    ])
    expect(JSON.parse(Buffer.from(gateway.sent[0]?.body as Uint8Array).toString())).toEqual({
      requests: [1, 2].map((n) => ({ custom_id: `r${n}`, params: { ...params, model: 'claude-real' } })),
    })
    expect(gateway.sent[0]?.headers['content-type']).toBe('application/json')
    expect(exchange.facts.usage).toMatchObject({ outputTokens: 100, estimated: true })
    for (const [method, tail] of [
      ['GET', ''],
      ['POST', '/cancel'],
      ['GET', '/results'],
      ['DELETE', ''],
    ] as const)
      await call(gateway, { method, path: `/v1/messages/batches/${id}${tail}` })
    expect(gateway.sent.slice(1).map(({ method, path }) => `${method} ${path}`)).toEqual(
      ['GET ', 'POST /cancel', 'GET /results', 'DELETE '].map((text) =>
        text.replace(' ', ' /v1/messages/batches/msgbatch_up1'),
      ),
    )
  })

  it.each<[string, unknown, object, RegExp]>([
    ['no requests', [], {}, /not valid JSON|1 to 100000/],
    ['no list', {}, {}, /list of requests/],
    ['further members', [{ custom_id: 'a', params }], { Requests: [] }, /no other member/],
    [
      'another model',
      [
        { custom_id: 'a', params },
        { custom_id: 'b', params: { ...params, model: 'gpt' } },
      ],
      {},
      /one model/,
    ],
    [
      'a model of another API',
      [{ custom_id: 'a', params: { ...params, model: 'gpt' } }],
      {},
      /does not offer batches of messages/,
    ],
    ['a request that is no object', ['x'], {}, /JSON object/],
  ])('with %s is refused', async (_, requests, more, message) => {
    const gateway = gatewayFor()
    const { status, text } = await call(gateway, create(requests, more))
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { type: 'error', error: expect.objectContaining({ message: expect.stringMatching(message) }) },
    ])
    expect(gateway.sent).toHaveLength(0)
  })
})

it('forwards lists and ids of the provider with passthrough only, and checks uploads nevertheless', async () => {
  const gateway = gatewayOf({ models: [entry('*')], passthrough: true })
  for (const path of ['/v1/files', '/v1/batches', '/v1/files/file-raw', '/v1/batches/batch_raw'])
    expect((await call(gateway, { method: 'GET', path })).status).toBe(200)
  expect(gateway.sent.map(({ path }) => path)).toContain('/v1/files/file-raw')
  const refused = upload(line(chat('gpt', { stream: true })))
  expect((await call(gateway, refused)).status).toBe(400)
  expect((await call(gateway, { ...refused, path: '/v1/Files' })).status).toBe(404)
  expect(gateway.sent).toHaveLength(4)
})

describe('a file in a request', () => {
  const config = { models: [entry('gpt'), entry('other', 'two')] }
  const asking = (model: string, id: string) => ({
    body: { model, messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }] },
  })

  async function stored() {
    const gateway = fixtureGateway(config, (request) =>
      request.path.endsWith('/completions') ? jsonReply({ choices: [] }) : answer(request),
    )
    const headers = { 'x-tollgate-model': 'gpt' }
    const { id } = await uploaded(gateway, upload('x', { purpose: 'user_data', headers }))
    return { gateway, id }
  }

  it('has its id at the provider', async () => {
    const { gateway, id } = await stored()
    expect((await call(gateway, asking('gpt', id))).status).toBe(200)
    const sent = Buffer.from(gateway.sent[1]?.body as Uint8Array).toString()
    expect(JSON.parse(sent)).toEqual(asking('gpt', 'file-up1').body)
    const file = await uploaded(gateway, upload(line(asking('gpt', id).body)))
    expect([file.status, JSON.parse(sentFile(gateway)).body]).toEqual([200, asking('gpt', 'file-up1').body])
  })

  it('is refused for other providers, and for ids of others and of the provider', async () => {
    const { gateway, id } = await stored()
    const elsewhere = await call(gateway, asking('other', id))
    expect([elsewhere.status, elsewhere.text]).toEqual([
      400,
      expect.stringContaining('does not serve this model'),
    ])
    const foreign = await call(gateway, asking('gpt', `${id.slice(0, -1)}_`))
    expect([foreign.status, JSON.parse(foreign.text).error.code]).toEqual([400, 'file_not_found'])
    expect(gateway.sent).toHaveLength(1)
    const raw = await call(gateway, asking('gpt', 'file-up1'))
    expect([raw.status, JSON.parse(raw.text).error.code]).toEqual([400, 'object_not_found'])
    const line1 = await call(gateway, upload(line(asking('gpt', 'file-up1').body)))
    expect([line1.status, JSON.parse(line1.text).error.code]).toEqual([400, 'object_not_found'])
    const quoted = { model: 'gpt', messages: [{ role: 'user', content: `see "${id}" here` }] }
    await call(gateway, { body: quoted })
    expect(JSON.parse(Buffer.from(gateway.sent.at(-1)?.body as Uint8Array).toString())).toEqual(quoted)
  })
})

describe('a file of Anthropic', () => {
  const anthropic = (name: string, host: string) => ({
    name,
    provider: 'anthropic' as const,
    params: { apiKey: 'k', baseUrl: `https://${host}.test/v1` },
  })
  const version = { 'anthropic-version': '2023-06-01' }

  it('goes to the provider with files of its API', async () => {
    const gateway = gatewayOf({ models: [entry('gpt'), anthropic('claude', 'two')] })
    const { id } = await uploaded(gateway, upload('x', { headers: version }))
    expect([gateway.sent[0]?.origin, gateway.sent[0]?.path]).toEqual(['https://two.test', '/v1/files'])
    expect(id).toMatch(/^file_[\w-]{100,}$/)
    expect((await call(gateway, { method: 'GET', path: `/v1/files/${id}`, headers: version })).status).toBe(
      200,
    )
    expect((await call(gateway, { method: 'GET', path: `/v1/files/${id}` })).status).toBe(404)
  })

  it('is refused without a provider that has it, and with several', async () => {
    for (const models of [[entry('gpt')], [anthropic('a', 'one'), anthropic('b', 'two')]]) {
      const gateway = gatewayOf({ models })
      const { status, text } = await call(gateway, upload('x', { headers: version }))
      expect([status, JSON.parse(text)]).toMatchObject([
        400,
        { type: 'error', error: { message: expect.stringContaining("files of Anthropic's API") } },
      ])
      expect(gateway.sent).toHaveLength(0)
    }
    const gateway = gatewayOf({ models: [entry('gpt'), anthropic('claude', 'two')] })
    const named = upload('x', { headers: { ...version, 'x-tollgate-model': 'gpt' } })
    expect((await uploaded(gateway, named)).error).toContain(
      'use a model of another provider, such as anthropic',
    )
  })
})
