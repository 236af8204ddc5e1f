import type { ServerResponse } from 'node:http'
import type { Lifetime } from './cleanup.ts'
import { anthropicKey } from './mock-anthropic.ts'
import { openAiKey } from './mock-openai.ts'
import { type MockServer, member, type SeenRequest, sendJson, startMockServer } from './mock-server.ts'

/**
 * Files and batches of OpenAI and of Anthropic, with the shapes of their API references. Batches are
 * complete when they are read for the first time. Texts of the results are those of the prompts. Each request
 * uses 7 tokens of input and 3 of output; with `reportsUsage`, batches of OpenAI have the sums.
 */
export function mockBatches(
  options: { lifetime?: Lifetime; reportsUsage?: boolean } = {},
): Promise<MockServer> {
  const files = new Map<string, StoredFile>()
  const batches = new Map<string, Record<string, unknown>>()
  const uploads = new Map<string, Record<string, unknown>>()
  const parts = new Map<string, Buffer>()
  let count = 0
  const nextId = (prefix: string) => `${prefix}${String(++count).padStart(24, '0')}`
  const created_at = 1_760_000_000

  function openAiFiles(request: SeenRequest, response: ServerResponse, rest: string[]): void | Promise<void> {
    const [id = '', tail] = rest
    if (request.method === 'POST') return upload(request, response)
    if (id === '') return sendPage(request, response, descriptions('file-'))
    const file = files.get(id)
    if (file === undefined) sendJson(response, notFound(`No such File object: ${id}`))
    else if (tail === 'content') {
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(file.content)
    } else if (request.method === 'DELETE') {
      files.delete(id)
      sendJson(response, { status: 200, body: { id, object: 'file', deleted: true } })
    } else sendJson(response, { status: 200, body: file.description })
  }

  async function upload(request: SeenRequest, response: ServerResponse): Promise<void> {
    const form = await formOf(request)
    const file = form.get('file')
    if (!(file instanceof File)) throw new Error('the upload has no file')
    const stored = addFile(Buffer.from(await file.arrayBuffer()), file.name, String(form.get('purpose')))
    sendJson(response, { status: 200, body: stored.description })
  }

  const descriptions = (prefix: string) =>
    [...files].flatMap(([id, { description }]) => (id.startsWith(prefix) ? [description] : []))

  function addFile(content: Buffer, filename: string, purpose: string): StoredFile & { id: string } {
    const id = nextId('file-')
    const description = { id, object: 'file', bytes: content.length, created_at, filename, purpose }
    const stored = { id, content, description: { ...description, status: 'processed', expires_at: null } }
    files.set(id, stored)
    return stored
  }

  function anthropicFiles(
    request: SeenRequest,
    response: ServerResponse,
    rest: string[],
  ): void | Promise<void> {
    const [id = '', tail] = rest
    if (request.headers['anthropic-beta']?.includes('files-api') !== true)
      return sendJson(response, anthropicNotFound)
    if (request.method === 'POST') return uploadToAnthropic(request, response)
    if (id === '') return sendPage(request, response, descriptions('file_'))
    const file = files.get(id)
    if (file === undefined) sendJson(response, anthropicNotFound)
    else if (tail === 'content') {
      response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(file.content)
    } else if (request.method === 'DELETE') {
      files.delete(id)
      sendJson(response, { status: 200, body: { id, type: 'file_deleted' } })
    } else sendJson(response, { status: 200, body: file.description })
  }

  async function uploadToAnthropic(request: SeenRequest, response: ServerResponse): Promise<void> {
    const file = (await formOf(request)).get('file')
    if (!(file instanceof File)) throw new Error('the upload has no file')
    const content = Buffer.from(await file.arrayBuffer())
    const id = nextId('file_')
    const facts = { filename: file.name, mime_type: file.type, size_bytes: content.length }
    const description = { id, type: 'file', created_at: '2026-01-01T00:00:00Z', ...facts, downloadable: true }
    files.set(id, { content, description })
    sendJson(response, { status: 200, body: description })
  }

  /** A message whose text is the content of its files. */
  function message({ json }: SeenRequest, response: ServerResponse): void {
    const ids = JSON.stringify(json).match(/file_\d{24}/g) ?? []
    const text = ids.map((id) => files.get(id)?.content.toString() ?? 'not found').join(', ')
    const content = [{ type: 'text', text }]
    const usage = { input_tokens: 7, output_tokens: 3 }
    const about = { id: 'msg_1', type: 'message', role: 'assistant', model: member(json, 'model') }
    sendJson(response, { status: 200, body: { ...about, content, stop_reason: 'end_turn', usage } })
  }

  async function openAiUploads(
    request: SeenRequest,
    response: ServerResponse,
    [id, tail]: string[],
  ): Promise<void> {
    const { json } = request
    if (id === undefined) {
      const upload = { id: nextId('upload_'), object: 'upload', bytes: member(json, 'bytes'), created_at }
      const about = { filename: member(json, 'filename'), purpose: member(json, 'purpose') }
      uploads.set(upload.id, { ...upload, ...about, status: 'pending' })
      return sendJson(response, { status: 200, body: uploads.get(upload.id) })
    }
    const upload = uploads.get(id)
    if (upload === undefined) return sendJson(response, notFound(`No such upload: ${id}`))
    if (tail === 'parts') {
      const data = (await formOf(request)).get('data')
      if (!(data instanceof File)) throw new Error('the part has no data')
      const part = { id: nextId('part_'), object: 'upload.part', created_at, upload_id: id }
      parts.set(part.id, Buffer.from(await data.arrayBuffer()))
      return sendJson(response, { status: 200, body: part })
    }
    upload['status'] = tail === 'cancel' ? 'cancelled' : 'completed'
    if (tail === 'complete') {
      const ids = member(json, 'part_ids')
      const found = Array.isArray(ids) ? ids.map((one) => parts.get(String(one)) ?? Buffer.alloc(0)) : []
      const file = addFile(Buffer.concat(found), String(upload['filename']), String(upload['purpose']))
      upload['file'] = file.description
    }
    sendJson(response, { status: 200, body: upload })
  }

  function openAiBatches(request: SeenRequest, response: ServerResponse, rest: string[]): void {
    const { method, json } = request
    const [id, tail] = rest
    if (id === undefined && method === 'POST') {
      const [input, endpoint] = [member(json, 'input_file_id'), member(json, 'endpoint')]
      if (!files.has(String(input))) return void sendJson(response, notFound(`No such File object: ${input}`))
      const ids = { id: nextId('batch_'), input_file_id: input, output_file_id: null, error_file_id: null }
      const batch = { ...ids, object: 'batch', endpoint, errors: null, completion_window: '24h', created_at }
      const counts = { total: 0, completed: 0, failed: 0 }
      const created = {
        ...batch,
        status: 'validating',
        request_counts: counts,
        metadata: { own: ids.id.slice(0, 5) },
      }
      batches.set(created.id, created)
      return void sendJson(response, { status: 200, body: created })
    }
    if (id === undefined) return void sendPage(request, response, [...batches.values()].filter(isOpenAi))
    const batch = batches.get(id)
    if (batch === undefined) return void sendJson(response, notFound(`No batch found with id '${id}'.`))
    if (tail === 'cancel') batch['status'] = batch['status'] === 'validating' ? 'cancelled' : 'cancelling'
    else if (batch['status'] === 'cancelled') batch['usage'] = null
    else if (batch['output_file_id'] === null) {
      const lines = results(files.get(String(batch['input_file_id']))?.content ?? Buffer.alloc(0))
      batch['status'] = 'completed'
      batch['output_file_id'] = addFile(lines, 'output.jsonl', 'batch_output').id
      if (options.reportsUsage === true) batch['usage'] = usageOf(lines.toString().split('\n').length - 1)
    }
    sendJson(response, { status: 200, body: batch })
  }

  function messageBatches(request: SeenRequest, response: ServerResponse, rest: string[]): void {
    const [id, tail] = rest
    if (id === undefined && request.method === 'GET') {
      const found = [...batches.values()].filter((batch) => !isOpenAi(batch))
      return void sendPage(
        request,
        response,
        found.map(({ requests: _, ...batch }) => batch),
      )
    }
    if (id === undefined) {
      const created = { id: nextId('msgbatch_'), type: 'message_batch', processing_status: 'in_progress' }
      const batch = { ...created, results_url: null, created_at: '2026-01-01T00:00:00Z' }
      batches.set(created.id, { ...batch, requests: member(request.json, 'requests') })
      return void sendJson(response, { status: 200, body: batch })
    }
    const stored = batches.get(id)
    if (stored === undefined) return void sendJson(response, anthropicNotFound)
    const { requests, ...batch } = stored
    if (tail === 'results') {
      const lines = messageResults(requests)
      response.writeHead(200, { 'content-type': 'application/x-jsonl' }).end(lines)
    } else if (request.method === 'DELETE') {
      batches.delete(id)
      sendJson(response, { status: 200, body: { id, type: 'message_batch_deleted' } })
    } else {
      stored['processing_status'] = tail === 'cancel' ? 'canceling' : 'ended'
      stored['results_url'] = `http://${request.headers.host}/v1/messages/batches/${id}/results`
      const { processing_status, results_url } = stored
      sendJson(response, { status: 200, body: { ...batch, processing_status, results_url } })
    }
  }

  return startMockServer(async (request, response) => {
    const { authorization, 'x-api-key': key } = request.headers
    const [, , ...segments] = (request.path.split('?')[0] ?? '').split('/')
    if (segments[0] === 'messages' || request.headers['anthropic-version'] !== undefined) {
      if (key !== anthropicKey && authorization !== `Bearer ${anthropicKey}`)
        sendJson(response, anthropicUnauthorized)
      else if (segments[0] === 'files') await anthropicFiles(request, response, segments.slice(1))
      else if (segments[1] === 'batches') messageBatches(request, response, segments.slice(2))
      else message(request, response)
    } else if (authorization !== `Bearer ${openAiKey}`) sendJson(response, unauthorized)
    else if (segments[0] === 'files') await openAiFiles(request, response, segments.slice(1))
    else if (segments[0] === 'uploads') await openAiUploads(request, response, segments.slice(1))
    else openAiBatches(request, response, segments.slice(1))
  }, options.lifetime)
}

const isOpenAi = (batch: Record<string, unknown>) => batch['object'] === 'batch'

/** A page of objects, which are in the order of their creation. */
function sendPage({ path }: SeenRequest, response: ServerResponse, objects: readonly object[]): void {
  const query = new URLSearchParams(path.split('?')[1])
  const purpose = query.get('purpose')
  const all = objects
    .filter((object) => purpose === null || member(object, 'purpose') === purpose)
    .toReversed()
  const after = query.get('after') ?? query.get('after_id') ?? query.get('page')
  const start = all.findIndex((object) => member(object, 'id') === after) + 1
  const limit = Number(query.get('limit') ?? 20)
  const data = all.slice(start, start + limit)
  const ids = { first_id: member(data[0], 'id') ?? null, last_id: member(data.at(-1), 'id') ?? null }
  const has_more = all.length > start + limit
  sendJson(response, {
    status: 200,
    body: { object: 'list', data, has_more, ...ids, next_page: has_more ? ids.last_id : null },
  })
}

function formOf({ bytes, headers }: SeenRequest): Promise<FormData> {
  const type = headers['content-type'] ?? ''
  return new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
}

type StoredFile = { content: Buffer; description: object }

const openAiError = (status: number, message: string) => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: 'id', code: null } },
})
const notFound = (message: string) => openAiError(404, message)
const unauthorized = openAiError(401, 'Incorrect API key provided.')

const anthropicError = (status: number, type: string) => ({
  status,
  body: { type: 'error', error: { type, message: 'the batch was not found' }, request_id: 'req_1' },
})
const anthropicNotFound = anthropicError(404, 'not_found_error')
const anthropicUnauthorized = anthropicError(401, 'authentication_error')

/** https://platform.openai.com/docs/api-reference/batch/object */
function usageOf(requests: number): object {
  const details = {
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  }
  const [input_tokens, output_tokens] = [7 * requests, 3 * requests]
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, ...details }
}

function results(input: Buffer): Buffer {
  const lines = input.toString().trim().split('\n')
  return Buffer.from(lines.map((line) => `${JSON.stringify(resultOf(JSON.parse(line)))}\n`).join(''))
}

function resultOf({ custom_id, body }: { custom_id: string; body: unknown }): object {
  const message = {
    role: 'assistant',
    content: `${member(body, 'model')}: ${member(body, 'messages', 0, 'content')}`,
  }
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
  const response = {
    status_code: 200,
    request_id: 'req_1',
    body: { object: 'chat.completion', choices: [{ index: 0, message }], usage },
  }
  return { id: 'batch_req_1', custom_id, response, error: null }
}

function messageResults(requests: unknown): string {
  const all: unknown[] = Array.isArray(requests) ? requests : []
  return all
    .map((request) => {
      const text = `${member(request, 'params', 'model')}: ${member(request, 'params', 'messages', 0, 'content')}`
      const usage = { input_tokens: 7, output_tokens: 3 }
      const message = { type: 'message', role: 'assistant', content: [{ type: 'text', text }], usage }
      return `${JSON.stringify({ custom_id: member(request, 'custom_id'), result: { type: 'succeeded', message } })}\n`
    })
    .join('')
}
