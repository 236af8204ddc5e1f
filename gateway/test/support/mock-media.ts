import type { ServerResponse } from 'node:http'
import type { Lifetime } from './cleanup.ts'
import { openAiKey } from './mock-openai.ts'
import {
  type MockServer,
  member,
  type SeenRequest,
  sendEvents,
  sendJson,
  startMockServer,
} from './mock-server.ts'
import { cohereWire } from './vendors/cohere-wire.ts'
import { generate } from './vendors/scripted-model.ts'
import type { Json } from './vendors/wire.ts'

/** The key that the rerank service accepts. */
export const cohereKey = 'co-canary-9f31aa'

/** The services of images, audio and moderation of OpenAI, with the shapes of its API reference. */
export function mockMedia(options: { lifetime?: Lifetime } = {}): Promise<MockServer> {
  return startMockServer(async (request, response) => {
    if (request.headers.authorization !== `Bearer ${openAiKey}`) {
      const error = {
        message: 'Incorrect API key provided: sk-wrong.',
        type: 'invalid_request_error',
        param: null,
      }
      sendJson(response, { status: 401, body: { error: { ...error, code: 'invalid_api_key' } } })
      return
    }
    const path = request.path.split('?')[0] ?? ''
    const handler = handlers[path] ?? (path.startsWith('/v1/responses') ? answerStored : undefined)
    if (handler) await handler(request, response)
    else sendJson(response, { status: 404, body: { error: { message: `Invalid URL (${request.path})` } } })
  }, options.lifetime)
}

type Handler = (request: SeenRequest, response: ServerResponse) => void | Promise<void>

const handlers: Record<string, Handler | undefined> = {
  '/v1/moderations': moderations,
  '/v1/images/generations': images,
  '/v1/images/edits': imageEdits,
  '/v1/images/variations': imageVariations,
  '/v1/audio/speech': speech,
  '/v1/audio/transcriptions': transcriptions,
  '/v1/audio/translations': transcriptions,
}

const serviceHeaders = { 'x-request-id': 'req_media_1', 'openai-version': '2020-10-01' }

function moderations({ json }: SeenRequest, response: ServerResponse): void {
  const input = member(json, 'input')
  const inputs: unknown[] = Array.isArray(input) ? input : [input]
  const results = inputs.map((item) => {
    const flagged = JSON.stringify(item).includes('attack')
    return {
      flagged,
      categories: { violence: flagged, 'violence/graphic': false },
      category_scores: { violence: flagged ? 0.98 : 0.0001, 'violence/graphic': 0.00001 },
      category_applied_input_types: { violence: ['text'], 'violence/graphic': ['text'] },
    }
  })
  const model = member(json, 'model')
  sendJson(response, { status: 200, headers: serviceHeaders, body: { id: 'modr-1', model, results } })
}

/** A picture larger than a line of text may be. */
const picture = Buffer.alloc(1_200_000, 7).toString('base64')

export const imageUsage = {
  total_tokens: 4210,
  input_tokens: 50,
  output_tokens: 4160,
  input_tokens_details: { text_tokens: 40, image_tokens: 10 },
}

function images({ json }: SeenRequest, response: ServerResponse): void {
  const settings = { background: 'opaque', output_format: 'png', quality: 'high', size: '1024x1024' }
  const created = 1_760_000_000
  if (member(json, 'stream') !== true) {
    const data = [{ b64_json: picture, revised_prompt: `A painting: ${member(json, 'prompt')}` }]
    sendJson(response, {
      status: 200,
      headers: serviceHeaders,
      body: { created, ...settings, data, usage: imageUsage },
    })
    return
  }
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: picture, created_at: created, ...settings, ...fields })}\n\n`
  sendEvents(response, [
    event('image_generation.partial_image', { partial_image_index: 0 }),
    event('image_generation.partial_image', { partial_image_index: 1 }),
    event('image_generation.completed', { usage: imageUsage }),
  ])
}

/** The parts of a form, with sizes in place of files. */
export async function formOf({ bytes, headers }: SeenRequest): Promise<[string, string][]> {
  const type = headers['content-type'] ?? ''
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
  return [...form].map(([name, value]) => [
    name,
    typeof value === 'string' ? value : `${value.name} ${value.type} ${value.size}`,
  ])
}

async function imageEdits(request: SeenRequest, response: ServerResponse): Promise<void> {
  const parts = await formOf(request)
  const fields = new Map(parts)
  const files = parts.filter(([name]) => name.startsWith('image')).map(([, file]) => file)
  const created = 1_760_000_000
  if (fields.get('stream') === 'true') {
    const type = 'image_edit.completed'
    const event = { type, b64_json: picture, created_at: created, usage: imageUsage }
    sendEvents(response, [`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`])
    return
  }
  const data = [{ b64_json: picture, revised_prompt: `${fields.get('prompt')}: ${files.join()}` }]
  sendJson(response, { status: 200, headers: serviceHeaders, body: { created, data, usage: imageUsage } })
}

async function imageVariations(request: SeenRequest, response: ServerResponse): Promise<void> {
  const fields = new Map(await formOf(request))
  const data = [{ url: `https://images.test/${fields.get('image')?.replaceAll(' ', '-')}` }]
  sendJson(response, { status: 200, headers: serviceHeaders, body: { created: 1_760_000_000, data } })
}

export const transcriptUsage = {
  type: 'tokens',
  input_tokens: 140,
  input_token_details: { text_tokens: 4, audio_tokens: 136 },
  output_tokens: 9,
  total_tokens: 149,
}

async function transcriptions(request: SeenRequest, response: ServerResponse): Promise<void> {
  const fields = new Map(await formOf(request))
  const text = `The file ${fields.get('file')} of Ada Lovelace`
  if (fields.get('stream') === 'true') {
    const event = (type: string, more: object) => `data: ${JSON.stringify({ type, ...more })}\n\n`
    sendEvents(response, [
      ...(text.match(/\s*\S+/g) ?? []).map((delta) =>
        event('transcript.text.delta', { delta, logprobs: [] }),
      ),
      event('transcript.text.done', { text, logprobs: [], usage: transcriptUsage }),
    ])
    return
  }
  switch (fields.get('response_format')) {
    case 'text':
    case 'vtt':
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8', ...serviceHeaders })
      response.end(`${text}\n`)
      return
    case 'verbose_json': {
      const segments = [{ id: 0, start: 0, end: 2.5, text, tokens: [1, 2], avg_logprob: -0.3 }]
      const words = text.split(' ').map((word, index) => ({ word, start: index, end: index + 1 }))
      const usage = { type: 'duration', seconds: 3 }
      const body = { task: 'transcribe', language: 'english', duration: 2.5, text, segments, words, usage }
      sendJson(response, { status: 200, headers: serviceHeaders, body })
      return
    }
    default:
      sendJson(response, { status: 200, headers: serviceHeaders, body: { text, usage: transcriptUsage } })
  }
}

/** Bytes that are no text. */
const sound = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 31) % 256))

function speech({ json }: SeenRequest, response: ServerResponse): void {
  if (member(json, 'stream_format') === 'sse') {
    const delta = sound.subarray(0, 3000).toString('base64')
    const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 }
    sendEvents(response, [
      `data: ${JSON.stringify({ type: 'speech.audio.delta', audio: delta })}\n\n`,
      `data: ${JSON.stringify({ type: 'speech.audio.done', usage })}\n\n`,
    ])
    return
  }
  response.writeHead(200, { 'content-type': 'audio/mpeg', 'transfer-encoding': 'chunked', ...serviceHeaders })
  response.write(sound.subarray(0, 70_000))
  response.end(sound.subarray(70_000))
}

const storedResponses = new Map<string, object>()
let count = 0
const nextId = () => count++

/** The responses API with stored responses. */
function answerStored({ path, method, json }: SeenRequest, response: ServerResponse): void {
  const [, id, action] = /^\/v1\/responses(?:\/([^/?]+)(\/\w+)?)?/.exec(path) ?? []
  const notFound = (name: string, code: string | null) => {
    const message = `Response with id '${name}' not found.`
    sendJson(response, {
      status: 404,
      body: { error: { message, type: 'invalid_request_error', param: 'id', code } },
    })
  }
  if (id === undefined) {
    const previous = member(json, 'previous_response_id') ?? null
    if (previous !== null && !storedResponses.has(String(previous))) {
      notFound(String(previous), 'previous_response_not_found')
      return
    }
    const created = {
      ...storedResponse(json, `resp_store${nextId()}`),
      previous_response_id: previous,
    }
    storedResponses.set(created.id, created)
    if (member(json, 'stream') !== true) sendJson(response, { status: 200, body: created })
    else sendEvents(response, storedEvents(created))
    return
  }
  const found = storedResponses.get(id)
  if (found === undefined) notFound(id, null)
  else if (action === '/input_items') {
    const item = { id: 'msg_1', type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }
    const ends = { first_id: 'msg_1', last_id: 'msg_1', has_more: false }
    sendJson(response, { status: 200, body: { object: 'list', data: [item], ...ends } })
  } else if (action === '/cancel')
    sendJson(response, { status: 200, body: { ...found, status: 'cancelled' } })
  else if (method === 'DELETE') {
    storedResponses.delete(id)
    sendJson(response, { status: 200, body: { id, object: 'response', deleted: true } })
  } else if (path.includes('stream=true')) sendEvents(response, storedEvents(found))
  else sendJson(response, { status: 200, body: found })
}

function storedResponse(json: unknown, id: string) {
  const content = [{ type: 'output_text', text: 'Hello Ada Lovelace', annotations: [], logprobs: [] }]
  const message = { id: 'msg_out', type: 'message', status: 'completed', role: 'assistant', content }
  const usage = {
    ...{ input_tokens: 11, output_tokens: 5, total_tokens: 16 },
    ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
  }
  const settings = {
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: { 'own"id': `"${id}"` },
  }
  const model = member(json, 'model')
  return {
    id,
    object: 'response',
    created_at: 1_760_000_000,
    status: 'completed',
    model,
    output: [message],
    usage,
    ...settings,
  }
}

function storedEvents(stored: object): string[] {
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const begun = { ...stored, status: 'in_progress', output: [], usage: null }
  const place = { item_id: 'msg_out', output_index: 0, content_index: 0 }
  return [
    event('response.created', { sequence_number: 0, response: begun }),
    event('response.output_text.delta', {
      sequence_number: 1,
      ...place,
      delta: 'Hello Ada Lovelace',
      logprobs: [],
    }),
    event('response.completed', { sequence_number: 2, response: stored }),
  ]
}

/** The rerank service of Cohere, in both versions. */
export function mockCohere(options: { lifetime?: Lifetime } = {}): Promise<MockServer> {
  return startMockServer(({ path, headers, json }, response) => {
    if (headers.authorization !== `Bearer ${cohereKey}`) {
      sendJson(response, { status: 401, body: { message: 'invalid api token' } })
      return
    }
    if (path === '/v2/chat') return sendCohereChat(json as Json, response)
    if (path === '/v2/embed') return sendEmbeddings(member(json, 'texts'), response)
    const version = /^\/v([12])\/rerank$/.exec(path)?.[1]
    const documents = member(json, 'documents')
    if (version === undefined || !Array.isArray(documents)) {
      const status = version === undefined ? 404 : 400
      sendJson(response, {
        status,
        body: { id: 'err-1', message: 'invalid request: list of documents must not be empty' },
      })
      return
    }
    const order = documents.map((_, index) => ({ index, relevance_score: 0.9 / (documents.length - index) }))
    const ranked = order.toReversed().slice(0, Number(member(json, 'top_n') ?? documents.length))
    const echoes = member(json, 'return_documents') === true
    sendJson(response, {
      status: 200,
      body: {
        id: '2d1e0b7c-5c5d-4f7c-8f4e-9a0f7a2c1d11',
        results: ranked.map((result) =>
          echoes ? { ...result, document: { text: documents[result.index] } } : result,
        ),
        meta: { api_version: { version }, billed_units: { search_units: 1 } },
      },
    })
  }, options.lifetime)
}

function sendCohereChat(body: Json, response: ServerResponse): void {
  const generated = generate(cohereWire.read(body))
  if (body['stream'] !== true) {
    sendJson(response, { status: 200, body: cohereWire.whole(generated, body) })
    return
  }
  response.writeHead(200, { 'content-type': cohereWire.streamType })
  for (const event of cohereWire.events(generated, body)) response.write(event)
  response.end()
}

function sendEmbeddings(texts: unknown, response: ServerResponse): void {
  const list = Array.isArray(texts) ? texts : []
  sendJson(response, {
    status: 200,
    body: {
      id: 'da6e531f-54c5-4a73-bf92-f60566d8d753',
      embeddings: { float: list.map(() => [0.5, -0.25]) },
      texts: list,
      response_type: 'embeddings_by_type',
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 2 * list.length } },
    },
  })
}
