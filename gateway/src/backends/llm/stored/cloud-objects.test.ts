import { expect, it } from 'vitest'
import { call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'
import type { ModelConfig } from '../config/config.ts'

const replies = {
  gemini: { candidates: [{ content: { role: 'model', parts: [{ text: 'x' }] }, finishReason: 'STOP' }] },
  bedrock: {
    output: { message: { role: 'assistant', content: [{ text: 'x' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  },
}

type Provider = keyof typeof replies

function gatewayOf(provider: Provider, model: Partial<ModelConfig> = {}) {
  const params = provider === 'gemini' ? {} : { awsRegion: 'eu-central-1' }
  const gateway = fixtureGateway(
    { models: [{ name: 'm', provider, params, auth: { key: 'k' }, ...model }] },
    () => jsonReply(replies[provider]),
  )
  return { gateway, create: (path: string, body: object) => call(gateway, { path, body }) }
}

const gemini = (parts: object[], more = {}) =>
  ['gemini', '/v1beta/models/m:generateContent', { contents: [{ role: 'user', parts }], ...more }] as const
const converse = (content: object[]) =>
  ['bedrock', '/model/m/converse', { messages: [{ role: 'user', content }] }] as const
const files = 'https://generativelanguage.googleapis.com/v1beta/files/1'
const s3Location = { uri: 's3://bucket/object' }

it.each([
  [
    gemini([{ fileData: { fileUri: 'gs://b/o', mimeType: 'text/plain' } }]),
    'contents[0].parts[0].fileData.fileUri',
    'files',
  ],
  [gemini([{ file_data: { file_uri: files } }]), 'contents[0].parts[0].file_data.file_uri', 'files'],
  [gemini([{ fileData: { fileUri: 'files/1' } }]), 'contents[0].parts[0].fileData.fileUri', 'files'],
  [gemini([{ fileData: { fileUri: [files] } }]), 'contents[0].parts[0].fileData.fileUri', 'files'],
  [
    gemini([{ functionResponse: { name: 'f', response: {}, parts: [{ fileData: { fileUri: files } }] } }]),
    'contents[0].parts[0].functionResponse.parts[0].fileData.fileUri',
    'files',
  ],
  [
    gemini([], { systemInstruction: { parts: [{ fileData: { fileUri: files } }] } }),
    'systemInstruction.parts[0].fileData.fileUri',
    'files',
  ],
  [gemini([{ text: 'x' }], { cachedContent: 'cachedContents/1' }), 'cachedContent', 'caches'],
  [gemini([{ text: 'x' }], { cached_content: 'cachedContents/1' }), 'cached_content', 'caches'],
  [
    gemini([{ text: 'x' }], { tools: [{ fileSearch: { fileSearchStoreNames: ['fileSearchStores/1'] } }] }),
    'tools[0].fileSearch',
    'vectorStores',
  ],
  [
    gemini([{ text: 'x' }], { tools: [{ retrieval: { vertexAiSearch: { datastore: 'd' } } }] }),
    'tools[0].retrieval',
    'vectorStores',
  ],
  [
    converse([{ document: { name: 'd', format: 'txt', source: { s3Location } } }]),
    'messages[0].content[0].document.source.s3Location',
    'files',
  ],
  [
    converse([
      { toolResult: { toolUseId: 't', content: [{ image: { format: 'png', source: { s3Location } } }] } },
    ]),
    'messages[0].content[0].toolResult.content[0].image.source.s3Location',
    'files',
  ],
] as const)('refuses an object of the account in %j unless its kind is shared', async (sent, param, kind) => {
  const [provider, path, body] = sent
  const { gateway, create } = gatewayOf(provider)
  const { status, text } = await create(path, body)
  expect([status, text]).toEqual([400, expect.stringContaining(`${param} must not name`)])
  expect(gateway.sent).toEqual([])
  expect((await gatewayOf(provider, { sharedObjects: [kind] }).create(path, body)).status).toBe(200)
})

it.each([
  gemini([{ fileData: { fileUri: 'https://www.youtube.com/watch?v=1', mimeType: 'video/mp4' } }]),
  gemini([{ functionCall: { name: 'f', args: { fileUri: 'gs://b/o', retrieval: 'x' } } }]),
  gemini([{ functionResponse: { name: 'f', response: { fileData: { fileUri: 'gs://b/o' } } } }]),
  gemini([{ text: 'gs://b/o' }], { cachedContent: '' }),
  converse([{ toolUse: { toolUseId: 't', name: 'f', input: { s3Location } } }]),
  converse([{ toolResult: { toolUseId: 't', content: [{ json: { s3Location } }] } }]),
])('forwards data that is no reference: %j', async (provider, path, body) => {
  expect((await gatewayOf(provider).create(path, body)).status).toBe(200)
})
