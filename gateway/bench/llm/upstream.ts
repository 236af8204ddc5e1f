import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { chunksPerStream, heldModel } from './workloads.ts'

/**
 * A chat completion provider of minimal cost: constant responses, selected by two substrings of the request.
 * Streams flush each chunk as a separate write, like a real model.
 */

const completion = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'bench-model',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'A gateway stands between clients and models. '.repeat(9),
          refusal: null,
          annotations: [],
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 180,
      completion_tokens: 96,
      total_tokens: 276,
      prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 0,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    service_tier: 'default',
    system_fingerprint: 'fp_bench',
  }),
)

function streamChunk(choices: unknown[], usage: unknown): Buffer {
  const chunk = {
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: 'bench-model',
    service_tier: 'default',
    system_fingerprint: 'fp_bench',
    choices,
    usage,
  }
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`)
}

const deltaChunk = streamChunk(
  [{ index: 0, delta: { content: ' gateway' }, logprobs: null, finish_reason: null }],
  null,
)
const stopChunk = streamChunk([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }], null)
const usageChunk = streamChunk([], { prompt_tokens: 180, completion_tokens: 200, total_tokens: 380 })
const doneChunk = Buffer.from('data: [DONE]\n\n')

const replyHeaders = { 'content-type': 'application/json', 'content-length': completion.byteLength }
const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }

function answer(request: IncomingMessage, response: ServerResponse): void {
  let start: Buffer | undefined
  let last: Buffer | undefined
  request.on('data', (chunk: Buffer) => {
    start ??= chunk
    last = chunk
  })
  request.on('end', () => {
    // The workloads put `model` and `stream` first; some gateways move `stream` to the end.
    const isStream = [start?.subarray(0, 256), last?.subarray(-256)].some((part) =>
      part?.includes('"stream":true'),
    )
    if (!start || !isStream) {
      response.writeHead(200, replyHeaders).end(completion)
      return
    }
    response.writeHead(200, streamHeaders)
    if (start.subarray(0, 256).includes(heldModel)) hold(response)
    else stream(response, 0)
  })
}

function stream(response: ServerResponse, sent: number): void {
  if (response.destroyed) return
  if (sent < chunksPerStream - 3) {
    response.write(deltaChunk)
    setImmediate(stream, response, sent + 1)
    return
  }
  response.write(stopChunk)
  setImmediate(() => {
    response.write(usageChunk)
    setImmediate(() => response.end(doneChunk))
  })
}

function hold(response: ServerResponse): void {
  response.write(deltaChunk)
  const timer = setInterval(() => response.write(deltaChunk), 1000)
  response.on('close', () => clearInterval(timer))
}

const server = createServer({ keepAliveTimeout: 60_000 }, answer)
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))
