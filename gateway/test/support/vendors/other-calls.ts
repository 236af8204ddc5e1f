import type { ServerResponse } from 'node:http'
import { type SeenRequest, sendJson } from '../mock-server.ts'
import type { Tokens } from './scripted-model.ts'
import type { Json } from './wire.ts'

/**
 * `billed`: tokens of input and output; `member` of the body, `header` of the request: where several calls
 * have a path.
 */
type Call = {
  name: string
  path: RegExp
  member?: string
  header?: string
  billed?: readonly [input: number, output: number]
  answer(request: SeenRequest): Json | Buffer
}

const usage = { prompt_tokens: 7, total_tokens: 7 }
const vector = [0.25, -0.5, 0.125]
const picture = { created: 1_760_000_000, data: [{ b64_json: 'aGk=' }] }

function inputsOf(json: unknown, name: string): unknown[] {
  return [(json as Json)[name]].flat()
}

/** Calls beside the conversations, by the path of the vendor. */
const calls: readonly Call[] = [
  {
    name: 'completions',
    path: /\/completions$/,
    billed: [7, 2],
    answer: () => ({
      ...{ id: 'cmpl-1', object: 'text_completion', created: 1_760_000_000, model: 'm' },
      choices: [{ text: 'Hello', index: 0, logprobs: null, finish_reason: 'stop' }],
      usage: { ...usage, completion_tokens: 2, total_tokens: 9 },
    }),
  },
  {
    name: 'embeddings',
    path: /\/embeddings$/,
    billed: [7, 0],
    answer: ({ json }) => ({
      object: 'list',
      model: (json as Json)['model'],
      data: inputsOf(json, 'input').map((_, index) => {
        const isBase64 = (json as Json)['encoding_format'] === 'base64'
        const embedding = isBase64 ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector
        return { object: 'embedding', index, embedding }
      }),
      usage,
    }),
  },
  {
    name: 'predict',
    path: /:predict$/,
    billed: [7, 0],
    answer: ({ json }) => ({
      predictions: inputsOf(json, 'instances').map(() => ({
        embeddings: { values: vector, statistics: { token_count: 7, truncated: false } },
      })),
    }),
  },
  { name: 'invoke', path: /\/invoke$/, member: 'prompt', answer: () => ({ generation: 'Hello' }) },
  {
    name: 'embed',
    path: /\/v2\/embed$/,
    answer: () => ({ embeddings: { float: [vector] }, meta: { billed_units: { input_tokens: 7 } } }),
  },
  {
    name: 'titan_embeddings',
    path: /\/amazon\.titan-embed[^/]*\/invoke$/,
    billed: [7, 0],
    answer: () => ({ embedding: vector, inputTextTokenCount: 7 }),
  },
  {
    name: 'bedrock_rerank',
    path: /\/cohere\.rerank[^/]*\/invoke$/,
    member: 'api_version',
    answer: () => ({ results: [{ index: 0, relevance_score: 0.5 }] }),
  },
  {
    name: 'moderations',
    path: /\/moderations$/,
    answer: () => ({ id: 'modr-1', model: 'm', results: [{ flagged: false, categories: {} }] }),
  },
  {
    name: 'rerank',
    path: /\/rerank$/,
    answer: () => ({ id: 'r-1', results: [{ index: 0, relevance_score: 0.5 }], meta: {} }),
  },
  {
    name: 'anthropic_files',
    path: /\/files$/,
    header: 'anthropic-version',
    answer: () => ({ id: 'file_1', type: 'file' }),
  },
  { name: 'files', path: /\/files$/, answer: () => ({ id: 'file-1', object: 'file' }) },
  {
    name: 'message_batches',
    path: /\/messages\/batches$/,
    answer: () => ({ id: 'msgbatch_1', type: 'message_batch' }),
  },
  { name: 'uploads', path: /\/uploads$/, answer: () => ({ id: 'upload_1', object: 'upload' }) },
  { name: 'batches', path: /\/batches$/, answer: () => ({ id: 'batch_1', object: 'batch' }) },
  { name: 'images', path: /\/images\/generations$/, answer: () => picture },
  { name: 'image_edits', path: /\/images\/edits$/, answer: () => picture },
  { name: 'image_variations', path: /\/images\/variations$/, answer: () => picture },
  { name: 'speech', path: /\/audio\/speech$/, answer: () => Buffer.from('ID3') },
  { name: 'transcriptions', path: /\/audio\/transcriptions$/, answer: () => ({ text: 'Hello' }) },
  { name: 'translations', path: /\/audio\/translations$/, answer: () => ({ text: 'Hello' }) },
  {
    name: 'count_tokens',
    path: /(?:\/count_tokens|\/count-tokens:rawPredict)$/,
    answer: () => ({ input_tokens: 17 }),
  },
  // The request is enough: the connection is refused.
  { name: 'realtime', path: /\/realtime$/, answer: () => ({}) },
  { name: 'converse_count', path: /\/count-tokens$/, answer: () => ({ inputTokens: 17 }) },
  { name: 'gemini_count_tokens', path: /:countTokens$/, answer: () => ({ totalTokens: 17 }) },
  { name: 'embed_content', path: /:embedContent$/, answer: () => ({ embedding: { values: vector } }) },
  {
    name: 'batch_embed_contents',
    path: /:batchEmbedContents$/,
    answer: ({ json }) => ({ embeddings: inputsOf(json, 'requests').map(() => ({ values: vector })) }),
  },
]

/** Answers a call; its name and tokens, or undefined if the path is none of them. */
export function answerOther(
  request: SeenRequest,
  response: ServerResponse,
): { api: string; tokens: Tokens } | undefined {
  const path = decodeURIComponent(request.path.split('?')[0] ?? '')
  const call = calls.find(
    ({ path: pattern, member, header }) =>
      pattern.test(path) &&
      (member === undefined || member in (request.json as Json)) &&
      (header === undefined || header in request.headers),
  )
  if (call === undefined) return undefined
  const body = call.answer(request)
  if (Buffer.isBuffer(body)) response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(body)
  else sendJson(response, { status: 200, body })
  const [input, output] = call.billed ?? [0, 0]
  return { api: call.name, tokens: { input, cached: 0, output, reasoning: 0 } }
}
