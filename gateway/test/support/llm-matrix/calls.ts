/** A call of clients, in the smallest form. */
export type ClientCall = {
  /** Value of `llm.api`. */
  readonly api: string
  path(model: string): string
  /** A form if it contains a file; undefined for a WebSocket. */
  body(model: string, id?: string): object | FormData | undefined
  headers?(model: string): Record<string, string>
  /** A call that creates the object of `id`. */
  readonly follows?: ClientCall
}

const messages = [{ role: 'user', content: 'Hi' }]
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]

const plain = (api: string, path: string, fields: object): ClientCall => ({
  api,
  path: () => path,
  body: (model) => ({ model, ...fields }),
})

const form = (api: string, path: string, file: string, fields: object): ClientCall => ({
  api,
  path: () => path,
  body(model) {
    const parts = new FormData()
    for (const [name, value] of Object.entries({ model, ...fields })) parts.set(name, value)
    parts.set(file, new Blob(['content']), file === 'file' ? 'a.mp3' : 'a.png')
    return parts
  },
})

const gemini = (api: string, method: string, fields: object = { contents }): ClientCall => ({
  api,
  path: (model) => `/v1beta/models/${model}:${method}`,
  body: () => fields,
})

const turns = [{ role: 'user', content: [{ text: 'Hi' }] }]

const bedrock = (api: string, operation: string, fields: object): ClientCall => ({
  api,
  path: (model) => `/model/${encodeURIComponent(model)}/${operation}`,
  body: () => fields,
})
const requests: ClientCall = {
  api: 'files',
  path: () => '/v1/files',
  body(model) {
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: { model, messages } }
    const parts = new FormData()
    parts.set('purpose', 'batch')
    parts.set('file', new Blob([JSON.stringify(line)]), 'a.jsonl')
    return parts
  },
}

const batches: ClientCall = {
  api: 'batches',
  path: () => '/v1/batches',
  body: (_, id) => ({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
  follows: requests,
}

const messageBatches: ClientCall = {
  api: 'message_batches',
  path: () => '/v1/messages/batches',
  body: (model) => ({ requests: [{ custom_id: 'a', params: { model, messages, max_tokens: 100 } }] }),
}

const anthropicFiles: ClientCall = {
  api: 'anthropic_files',
  path: () => '/v1/files',
  headers: (model) => ({ 'anthropic-version': '2023-06-01', 'x-tollgate-model': model }),
  body() {
    const parts = new FormData()
    parts.set('file', new Blob(['content']), 'a.txt')
    return parts
  },
}

const uploads: ClientCall = {
  api: 'uploads',
  path: () => '/v1/uploads',
  headers: (model) => ({ 'x-tollgate-model': model }),
  body: () => ({ purpose: 'user_data', filename: 'a.txt', bytes: 7, mime_type: 'text/plain' }),
}

/** Every call that the gateway reads from clients. */
export const clientCalls: readonly ClientCall[] = [
  plain('chat_completions', '/v1/chat/completions', { messages }),
  plain('completions', '/v1/completions', { prompt: 'Hi' }),
  plain('embeddings', '/v1/embeddings', { input: 'Hi' }),
  plain('responses', '/v1/responses', { input: 'Hi' }),
  plain('messages', '/v1/messages', { messages, max_tokens: 100 }),
  plain('count_tokens', '/v1/messages/count_tokens', { messages }),
  plain('moderations', '/v1/moderations', { input: 'Hi' }),
  plain('rerank', '/v1/rerank', { query: 'Hi', documents: ['a', 'b'] }),
  plain('embed', '/v2/embed', { texts: ['Hi'], input_type: 'search_query', embedding_types: ['float'] }),
  plain('cohere_chat', '/v2/chat', { messages }),
  plain('images_generations', '/v1/images/generations', { prompt: 'a lake' }),
  form('images_edits', '/v1/images/edits', 'image', { prompt: 'a lake' }),
  form('images_variations', '/v1/images/variations', 'image', {}),
  plain('audio_speech', '/v1/audio/speech', { input: 'Hi', voice: 'alloy' }),
  form('audio_transcriptions', '/v1/audio/transcriptions', 'file', {}),
  form('audio_translations', '/v1/audio/translations', 'file', {}),
  gemini('generate_content', 'generateContent'),
  gemini('gemini_count_tokens', 'countTokens'),
  gemini('embed_content', 'embedContent', { content: contents[0] }),
  gemini('batch_embed_contents', 'batchEmbedContents', { requests: [{ content: contents[0] }] }),
  { api: 'realtime', path: (model) => `/v1/realtime?model=${model}`, body: () => undefined },
  bedrock('converse', 'converse', { messages: turns }),
  bedrock('bedrock_count_tokens', 'count-tokens', { input: { converse: { messages: turns } } }),
  bedrock('invoke_model', 'invoke', { prompt: 'Hi' }),
  requests,
  batches,
  messageBatches,
  anthropicFiles,
  uploads,
]
