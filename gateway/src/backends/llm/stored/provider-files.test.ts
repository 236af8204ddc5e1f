import { expect, it } from 'vitest'
import { call, type FixtureGateway, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import type { ModelConfig } from '../config/config.ts'

function gatewayOf(model: Partial<ModelConfig> = {}) {
  const params = { apiKey: 'k', baseUrl: 'https://one.test/v1' }
  const gateway = fixtureGateway(
    { models: [{ name: 'm', provider: 'openai', params, ...model }] },
    ({ path }) =>
      jsonReply(
        path.endsWith('/messages')
          ? { type: 'message', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } }
          : { id: 'r_12345', object: 'response', status: 'completed', choices: [], output: [] },
      ),
  )
  const create = (path: string, body: object) =>
    call(gateway, { path, body: { model: 'm', max_tokens: 9, ...body } })
  return { gateway, create }
}

const chat = (content: object[], more = {}) =>
  ['openai', '/v1/chat/completions', { messages: [{ role: 'user', content }], ...more }] as const
const items = (input: object[], more = {}) => ['openai', '/v1/responses', { input, ...more }] as const
const message = (content: object[], more = {}) =>
  ['anthropic', '/v1/messages', { messages: [{ role: 'user', content }], ...more }] as const
const google = 'https://generativelanguage.googleapis.com'
const part = { type: 'input_file', file_id: 'file-1' }
const source = { type: 'file', file_id: 'file_1' }
const container = { type: 'auto', file_ids: ['file-1'] }
const custom = { type: 'custom', skill_id: 'skill_1' }

it.each([
  [chat([{ type: 'file', file: { file_id: 'file-1' } }]), 'messages[0].content[0].file.file_id', 'files'],
  [items([{ role: 'user', content: [part] }]), 'input[0].content[0].file_id', 'files'],
  [
    items([{ type: 'function_call_output', call_id: 'c', output: [part] }]),
    'input[0].output[0].file_id',
    'files',
  ],
  [items([], { tools: [{ type: 'code_interpreter', container }] }), 'tools[0].container.file_ids', 'files'],
  [
    items([], { tools: [{ environment: { skills: [custom] } }] }),
    'tools[0].environment.skills[0].skill_id',
    'skills',
  ],
  [message([{ type: 'document', source }]), 'messages[0].content[0].source.file_id', 'files'],
  [
    message([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source }] }]),
    'messages[0].content[0].content[0].source.file_id',
    'files',
  ],
  [message([{ type: 'container_upload', file_id: 'file_1' }]), 'messages[0].content[0].file_id', 'files'],
  [message([], { container: { skills: [custom] } }), 'container.skills[0].skill_id', 'skills'],
  [
    chat([{ type: 'image_url', image_url: { url: 'gs://b/o' } }]),
    'messages[0].content[0].image_url.url',
    'files',
  ],
  [
    chat([{ type: 'video_url', video_url: { url: ' \tS3://b/o' } }]),
    'messages[0].content[0].video_url.url',
    'files',
  ],
  [chat([{ type: 'file', file: { file_id: 'gs://b/o' } }]), 'messages[0].content[0].file.file_id', 'files'],
  [
    chat([{ type: 'file', file: { file_data: 'file:///etc/passwd' } }]),
    'messages[0].content[0].file.file_data',
    'files',
  ],
  [
    items([{ role: 'user', content: [{ type: 'input_image', image_url: `${google}/v1beta/files/1` }] }]),
    'input[0].content[0].image_url',
    'files',
  ],
  [
    message([
      { type: 'document', source: { type: 'url', url: 'HTTPS://x@generativelanguage%2Egoogleapis.com./f' } },
    ]),
    'messages[0].content[0].source.url',
    'files',
  ],
  [chat([], { data_sources: [{ type: 'azure_search', parameters: {} }] }), 'data_sources', 'vectorStores'],
  [chat([], { cachedContent: 'cachedContents/1' }), 'cachedContent', 'caches'],
  [
    chat([], { extra_body: { google: { cached_content: 'cachedContents/1' } } }),
    'extra_body.google.cached_content',
    'caches',
  ],
  [
    chat([], { messages: [{ role: 'assistant', audio: { id: 'audio_12345' } }] }),
    'messages[0].audio.id',
    'items',
  ],
  [message([], { container: 'container_1' }), 'container', 'containers'],
  [message([], { container: { id: 'container_1' } }), 'container.id', 'containers'],
  [message([], { container: 1 }), 'container', 'containers'],
] as const)(
  'refuses an object of the provider in %j unless its kind is shared',
  async (sent, param, kind) => {
    const [provider, path, body] = sent
    const { gateway, create } = gatewayOf({ provider })
    const { status, text } = await create(path, body)
    expect([status, text]).toEqual([400, expect.stringContaining(`${param} must not name`)])
    expect(gateway.sent).toEqual([])
    expect((await gatewayOf({ provider, sharedObjects: [kind] }).create(path, body)).status).toBe(200)
    const ofClient = gatewayOf({ provider, params: { baseUrl: 'https://one.test/v1' } })
    expect((await ofClient.create(path, body)).status).toBe(200)
  },
)

const annotations = [{ type: 'file_citation', file_id: 'file-1', index: 0, filename: 'a' }]

it.each([
  items([{ role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations }] }]),
  items([{ type: 'file_search_call', id: 'fs_1', results: [{ file_id: 'file-1' }] }]),
  items([], { metadata: { file_id: 'file-1' } }),
  chat([{ type: 'file', file: { file_id: null, file_data: 'x' } }]),
  message([{ type: 'tool_use', id: 't', name: 'f', input: { file_id: 'file-1' } }]),
  message([
    {
      type: 'code_execution_tool_result',
      tool_use_id: 't',
      content: { type: 'code_execution_result', content: [{ type: 'code_execution_output', file_id: 'f' }] },
    },
  ]),
  message([], { container: { skills: [{ type: 'anthropic', skill_id: 'xlsx' }] } }),
  message([{ type: 'tool_use', id: 't', name: 'f', input: { container: 'container_1', url: 'gs://b/o' } }]),
  message([{ type: 'text', text: 'gs://bucket/object' }]),
  chat([{ type: 'image_url', image_url: { url: 'https://storage.googleapis.com/public/cat.png' } }]),
  chat([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]),
])('forwards data that is no reference: %j', async (provider, path, body) => {
  expect((await gatewayOf({ provider }).create(path, body)).status).toBe(200)
})

it('accepts a file of the client in a request of a batch that a guard has changed', async () => {
  const { gateway } = gatewayOf()
  const form = (purpose: string, content: string) => ({
    path: '/v1/files',
    headers: { 'content-type': 'multipart/form-data; boundary=b1' },
    body: Buffer.from(
      `--b1\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n${purpose}\r\n--b1\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${content}\r\n--b1--\r\n`,
    ),
  })
  const { id } = JSON.parse((await call(gateway, form('user_data', 'x'))).text)
  const asking = (file: string) => ({
    model: 'm',
    messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file } }] }],
  })
  const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: asking(id) }
  const guarded: FixtureGateway = {
    ...gateway,
    llm: {
      ...gateway.llm,
      async backend(exchange) {
        const refused = await exchange.llm?.eachRequest?.(async ({ llm }) => {
          const text = JSON.stringify({ ...llm?.message?.request()?.value, seed: 1 })
          await llm?.message?.replaceRequest(Buffer.from(text))
          return undefined
        })
        return refused ?? gateway.llm.backend(exchange)
      },
    },
  }
  expect((await call(guarded, form('batch', JSON.stringify(line)))).status).toBe(200)
  const sent = Buffer.from(gateway.sent.at(-1)?.body as Uint8Array).toString()
  expect(sent).toContain(JSON.stringify({ ...asking('r_12345'), seed: 1 }))
})
