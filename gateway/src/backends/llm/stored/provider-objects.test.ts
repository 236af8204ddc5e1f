import { describe, expect, it } from 'vitest'
import { call, fixtureGateway, jsonReply, streamReply } from '../../../../test/fixtures/llm.ts'
import type { ModelConfig } from '../config/config.ts'

const item = { id: 'msg_1234567890', type: 'message', role: 'assistant', content: [] }
const response = { id: 'resp_12345', object: 'response', status: 'completed', output: [item] }
const event = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const delta = { type: 'response.output_text.delta', item_id: item.id, delta: `"${item.id}"` }
const stream = [
  event('response.created', { response: { ...response, output: [] } }),
  event('response.output_item.added', { item }),
  event(delta.type, delta),
  event('response.completed', { response }),
]

function gatewayOf(model: Partial<ModelConfig> = {}) {
  const params = { apiKey: 'k', baseUrl: 'https://one.test/v1' }
  const gateway = fixtureGateway(
    { models: [{ name: 'm', provider: 'openai', params, ...model }] },
    (request) => (String(request.body).includes('"stream":true') ? streamReply(stream) : jsonReply(response)),
  )
  const create = (body: object) =>
    call(gateway, { path: '/v1/responses', body: { model: 'm', input: 'x', ...body } })
  return { gateway, create, sent: () => JSON.parse(String(gateway.sent.at(-1)?.body)) }
}

describe('an item of a response', () => {
  it('is named by the client that has received its id', async () => {
    const { create, sent } = gatewayOf()
    const { output } = JSON.parse((await create({})).text)
    const [{ id }] = output
    expect(id).toMatch(/^msg_1234567890_[\w-]{22}$/)
    const input = [
      { type: 'item_reference', id },
      { ...item, id, note: `of "${id}"` },
      { type: 'reasoning', id },
    ]
    expect((await create({ input })).status).toBe(200)
    expect(sent().input).toEqual([
      { type: 'item_reference', id: item.id },
      { ...item, note: `of "${id}"` },
      { type: 'reasoning', id: item.id },
    ])
  })

  it('has the same id in all events of a stream', async () => {
    const { create } = gatewayOf()
    const { text } = await create({ stream: true })
    const events = text
      .split('\n')
      .flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
    const [, added, part, completed] = events
    expect(added.item.id).toMatch(/^msg_1234567890_/)
    expect(part.item_id).toBe(added.item.id)
    expect(part.delta).toBe(`"${item.id}"`)
    expect(completed.response.output[0].id).toBe(added.item.id)
  })

  it('has the same id in a stream that does not announce it', async () => {
    const [created = '', , part = '', completed = ''] = stream
    const gateway = fixtureGateway(
      { models: [{ name: 'm', provider: 'openai', params: { apiKey: 'k' } }] },
      () => streamReply([created, part, completed]),
    )
    const { text } = await call(gateway, {
      path: '/v1/responses',
      body: { model: 'm', input: 'x', stream: true },
    })
    const ids = [...text.matchAll(/"(?:item_)?id":"(msg_[^"]+)"/g)].map(([, id]) => id)
    expect(ids).toEqual([expect.stringMatching(/^msg_1234567890_/), ids[0]])
  })

  it('has its id at the provider if its content is present, after a change of the key', async () => {
    const { create, sent } = gatewayOf()
    const { output } = JSON.parse((await gatewayOf().create({})).text)
    const stale = `${output[0].id.slice(0, -1)}${output[0].id.endsWith('A') ? 'B' : 'A'}`
    expect((await create({ input: [{ ...item, id: stale }] })).status).toBe(200)
    expect(sent().input).toEqual([item])
  })

  it('is not named by other clients', async () => {
    const { gateway, create } = gatewayOf()
    const { output } = JSON.parse((await create({})).text)
    const forged = `${output[0].id.slice(0, -1)}${output[0].id.endsWith('A') ? 'B' : 'A'}`
    for (const id of [item.id, forged]) {
      const { status, text } = await create({ input: [{ id }] })
      expect([status, JSON.parse(text).error.param]).toEqual([400, 'input[0].id'])
    }
    expect(gateway.sent).toHaveLength(1)
  })
})

const foreign = [
  [{ conversation: 'conv_1' }, 'conversation', 'conversations'],
  [{ conversation: { id: 'conv_1' } }, 'conversation', 'conversations'],
  [{ prompt: { id: 'pmpt_1' } }, 'prompt', 'prompts'],
  [
    { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
    'tools[0].vector_store_ids',
    'vectorStores',
  ],
  [{ tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, 'tools[0].container', 'containers'],
  [
    { tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: 'cntr_1' } }] },
    'tools[0].environment.container_id',
    'containers',
  ],
  [
    { input: [{ type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1', code: 'x' }] },
    'input[0].container_id',
    'containers',
  ],
  [
    { input: [{ type: 'shell_call', environment: { container_id: 'cntr_1' } }] },
    'input[0].environment.container_id',
    'containers',
  ],
  [
    { input: [{ role: 'assistant', content: [{ text: 'x', annotations: [{ container_id: 'cntr_1' }] }] }] },
    'input[0].content[0].annotations[0].container_id',
    'containers',
  ],
  [
    { input: [{ type: 'tool_search_output', tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }] },
    'input[0].tools[0].container',
    'containers',
  ],
  [{ input: [{ container_id: ['cntr_1'] }] }, 'input[0].container_id', 'containers'],
  [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].id', 'items'],
  [{ input: [{ type: null, id: 'msg_1' }] }, 'input[0].id', 'items'],
  [{ input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, 'input[0].id', 'items'],
  [{ input: [{ type: 'image_generation_call', id: 'ig_1' }] }, 'input[0].id', 'items'],
] as const

describe.each(foreign)('an object of the provider in %j', (body, param, kind) => {
  it('is refused, unless the configuration shares its kind', async () => {
    const { gateway, create } = gatewayOf()
    const { status, text } = await create(body)
    expect([status, JSON.parse(text).error]).toEqual([400, expect.objectContaining({ param })])
    expect(gateway.sent).toEqual([])
    expect((await gatewayOf({ sharedObjects: [kind] }).create(body)).status).toBe(200)
  })

  it('is forwarded with the credential of the client', async () => {
    const ofClient = gatewayOf({ params: { baseUrl: 'https://one.test/v1' } })
    expect((await ofClient.create(body)).status).toBe(200)
  })
})

it('refuses more items with an id than it checks', async () => {
  const { create } = gatewayOf()
  const input = new Array(2001).fill({ ...item })
  expect((await create({ input: input.slice(1) })).status).toBe(200)
  const { status, text } = await create({ input })
  expect([status, text]).toEqual([400, expect.stringContaining('at most 2000 items')])
})

it.each([
  { input: [{ role: 'user', content: 'x' }] },
  { input: [{ type: 'reasoning', id: 'rs_1', encrypted_content: 'x' }] },
  { input: [{ ...item }, { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' }] },
  { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }], conversation: null, prompt: null },
  { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
])('a request with its content is forwarded: %j', async (body) => {
  const { create, sent } = gatewayOf()
  expect((await create(body)).status).toBe(200)
  expect(sent()).toMatchObject(body)
})
