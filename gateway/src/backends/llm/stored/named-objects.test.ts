import { describe, expect, it } from 'vitest'
import { call, fixtureGateway, jsonReply, streamReply } from '../../../../test/fixtures/llm.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'

type Scene = {
  provider: 'openai' | 'anthropic'
  path: string
  /** A request whose response has an id. */
  asking: object
  reply: object
  stream: readonly object[]
  /** A request that names the id. */
  naming(id: string): object
  id: string
}

const openingTurn = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }
const part = {
  type: 'output_text',
  text: 'see "cntr_12345"',
  annotations: [{ type: 'container_file_citation', container_id: 'cntr_12345', file_id: 'cfile_1' }],
}
const interpreter = { type: 'code_interpreter_call', id: 'ci_12345', container_id: 'cntr_12345', code: 'x' }
const ofInterpreter = {
  id: 'resp_12345',
  object: 'response',
  status: 'completed',
  output: [interpreter, { id: 'msg_12345', type: 'message', role: 'assistant', content: [part] }],
}
const audio = { id: 'audio_12345', data: 'AAAA', transcript: 'x' }
const container = { id: 'container_12345', expires_at: '2026-01-01T00:00:00Z' }
const usage = { input_tokens: 1, output_tokens: 1 }
const claude = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage }

const scenes: Record<string, Scene> = {
  'a container of code': {
    provider: 'openai',
    path: '/v1/responses',
    asking: { model: 'm', input: 'x', tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
    reply: ofInterpreter,
    stream: [
      { type: 'response.created', response: { ...ofInterpreter, output: [] } },
      {
        type: 'response.output_text.annotation.added',
        item_id: 'msg_12345',
        annotation: part.annotations[0],
      },
      { type: 'response.completed', response: ofInterpreter },
    ],
    naming: (id) => ({
      model: 'm',
      input: [
        { ...interpreter, container_id: id },
        {
          role: 'assistant',
          content: [{ ...part, annotations: [{ ...part.annotations[0], container_id: id }] }],
        },
      ],
      tools: [{ type: 'code_interpreter', container: id }],
    }),
    id: 'cntr_12345',
  },
  'earlier audio': {
    provider: 'openai',
    path: '/v1/chat/completions',
    asking: { ...openingTurn, modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } },
    reply: {
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', audio } }],
    },
    stream: [
      {
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta: { role: 'assistant', audio: { id: audio.id } } }],
      },
      { object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    ],
    naming: (id) => ({
      model: 'm',
      messages: [...openingTurn.messages, { role: 'assistant', audio: { id } }],
    }),
    id: audio.id,
  },
  'a container of messages': {
    provider: 'anthropic',
    path: '/v1/messages',
    asking: { ...openingTurn, tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
    reply: { ...claude, container },
    stream: [
      { type: 'message_start', message: claude },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', container }, usage },
      { type: 'message_stop' },
    ],
    naming: (id) => ({ ...openingTurn, container: { id, skills: [] } }),
    id: container.id,
  },
}

function gatewayOf(
  { provider, reply, stream }: Scene,
  more: Partial<ModelConfig> = {},
  section: Partial<LlmConfig> = {},
) {
  const params = { apiKey: 'k', baseUrl: 'https://one.test/v1' }
  return fixtureGateway({ models: [{ name: 'm', provider, params, ...more }], ...section }, (request) =>
    String(request.body).includes('"stream":true')
      ? streamReply(stream.map((event) => `data: ${JSON.stringify(event)}\n\n`))
      : jsonReply(reply),
  )
}

/** The id that a client finds in a response. */
function receivedId(text: string, id: string): string {
  const found = new Set(text.match(new RegExp(`"${id}[\\w-]*"`, 'g')))
  expect(found.size).toBe(1)
  return JSON.parse([...found].join())
}

describe.each(Object.entries(scenes))('%s', (_, scene) => {
  const alice = { owner: 'alice' }
  const bob = { owner: 'bob' }
  const { path, asking, naming, id } = scene

  it.each([false, true])('is named by the client that has received its id, streamed: %s', async (stream) => {
    const gateway = gatewayOf(scene)
    const { text } = await call(gateway, { path, body: { ...asking, stream }, ...alice })
    const own = receivedId(text, id)
    expect(own).toMatch(new RegExp(`^${id}_[\\w-]{22}$`))
    expect((await call(gateway, { path, body: naming(own), ...alice })).status).toBe(200)
    expect(JSON.parse(String(gateway.sent.at(-1)?.body))).toEqual({ ...naming(id) })
  })

  it('is not named by other clients, nor by the id of the provider', async () => {
    const gateway = gatewayOf(scene)
    const { text } = await call(gateway, { path, body: asking, ...alice })
    const own = receivedId(text, id)
    const forged = `${own.slice(0, -1)}${own.endsWith('A') ? 'B' : 'A'}`
    for (const [named, client] of [
      [own, bob],
      [id, alice],
      [forged, alice],
    ] as const) {
      const { status, text: refused } = await call(gateway, { path, body: naming(named), ...client })
      expect([status, refused]).toEqual([
        400,
        expect.stringContaining('must not name an object of the provider'),
      ])
    }
    expect(gateway.sent).toHaveLength(1)
  })

  it('is not named by an id of another kind', async () => {
    const gateway = gatewayOf(scene)
    const item = gatewayOf({
      ...(scenes['a container of code'] as Scene),
      reply: { ...ofInterpreter, output: [{ id, type: 'message' }] },
    })
    const body = { model: 'm', input: 'x' }
    const { text } = await call(item, { path: '/v1/responses', body, ...alice })
    const ofItem = receivedId(text, id)
    expect((await call(gateway, { path, body: naming(ofItem), ...alice })).status).toBe(400)
  })
})

it('has calls of its own at forwarded paths', async () => {
  const scene = scenes['a container of code'] as Scene
  const gateway = gatewayOf(scene, { name: '*' }, { passthrough: true })
  const { text } = await call(gateway, { path: scene.path, body: scene.asking, owner: 'alice' })
  const own = receivedId(text, scene.id)
  const get = (id: string, owner: string) =>
    call(gateway, { method: 'GET', path: `/v1/containers/${id}/files/cfile_1/content`, owner })
  await get(own, 'alice')
  expect(gateway.sent.at(-1)?.path).toBe(`/v1/containers/${scene.id}/files/cfile_1/content`)
  await get(own, 'bob')
  expect(gateway.sent.at(-1)?.path).toContain(own)
})
