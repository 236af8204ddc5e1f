import { GatewayError } from '../../../lib/gateway-error.ts'
import { type BodySink, type BodySource, isSource } from '../../../net/http/body.ts'
import { createChunkList } from '../../../net/http/chunk-list.ts'
import { isPlain } from '../../../net/http/content-encoding.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { isEventStream } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Attempt } from '../request/call.ts'
import type { Endpoint } from '../request/endpoints.ts'
import { generatesText } from '../request/llm-message.ts'
import { createLineBuffer } from './line-buffer.ts'
import { endpointOf } from './record.ts'
import { createStreamWatch } from './stream-watch.ts'
import { mergeUsage, modelIn } from './usage.ts'

/** Most bytes before the first content. Beyond it, the client receives the stream as it is. */
const maxHeldBytes = 64 * 1024
/** Longest wait for the first content after the head: proxies and clients expect bytes within a minute. */
const maxHoldMs = 15_000

/**
 * Waits for the first content of an event stream, so that a stream that fails before it can be replaced by
 * that of another target. Resolves at once for other responses. The reply starts with the bytes that have
 * arrived. Rejects with `upstream_reset`, `upstream_invalid` or the error of the stream; the usage reported
 * until then is recorded.
 */
export function awaitContent(attempt: Attempt, reply: Reply): Reply | Promise<Reply> {
  const endpoint = endpointOf(attempt)
  const { body, status, headers } = reply
  if (endpoint !== 'passthrough' && !generatesText(endpoint)) return reply
  if (status < 200 || status > 299 || endpoint === 'passthrough' || !isSource(body)) return reply
  if (!isEventStream(headers) || !isPlain(firstHeader(headers, 'content-encoding'))) return reply
  const watch = watchStart(attempt, endpoint)
  return holdStream(body, watch).then((source) => ({ ...reply, body: source }))
}

/** Progress of a stream before its first content. */
type StartWatch = {
  /** Reads complete lines, and reports whether the stream has started, failed or needs more lines. */
  read(lines: Buffer): 'waiting' | 'started' | 'failed'
}

/** Calls of tools may have no arguments, which is no generated text. */
const toolCall = /"(?:tool_calls|tool_use|toolUse|function_call|functionCall|inlineData)"/

function watchStart(attempt: Attempt, endpoint: Endpoint): StartWatch {
  let hasContent = false
  const watch = createStreamWatch({
    endpoint,
    hideUsage: false,
    onUsage(usage, message) {
      attempt.usage = endpoint === 'messages' ? mergeUsage(attempt.usage, usage) : usage
      attempt.responseModel = modelIn(endpoint, message) ?? attempt.responseModel
    },
    onGenerated() {
      hasContent = true
    },
  })
  return {
    read(bytes) {
      const lines = bytes.toString('latin1')
      watch.read(lines)
      if (hasContent || toolCall.test(lines)) return 'started'
      if (watch.state === 'failed') return 'failed'
      return watch.state === 'open' ? 'waiting' : 'started'
    },
  }
}

type End = { readonly error: Error | undefined; readonly trailers: Headers | undefined }

/** Buffers a stream until its start, and resolves with a source that replays it. */
function holdStream(source: BodySource, watch: StartWatch): Promise<BodySource> {
  return new Promise((resolve, reject) => {
    const held = createHeldChunks(source)
    const lines = createLineBuffer()
    let isDecided = false
    const timer = setTimeout(start, maxHoldMs)

    function decide(): boolean {
      if (isDecided) return false
      isDecided = true
      clearTimeout(timer)
      return true
    }

    function start(): void {
      if (decide()) resolve(held.source)
    }

    function fail(error: Error): void {
      if (!decide()) return
      source.cancel()
      reject(error)
    }

    function read(chunk: Buffer): void {
      const newline = chunk.lastIndexOf(lineFeed)
      if (newline === -1) {
        lines.add(chunk)
        return
      }
      const progress = watch.read(lines.flush(chunk.subarray(0, newline + 1)))
      lines.add(chunk.subarray(newline + 1))
      if (progress === 'failed') fail(failedBeforeContent())
      else if (progress === 'started') start()
    }

    source.start({
      write(chunk) {
        const flows = held.write(chunk)
        if (!isDecided) read(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
        if (!isDecided && held.size() >= maxHeldBytes) start()
        return flows
      },
      end(trailers) {
        if (!isDecided && lines.size > 0) read(Buffer.from('\n'))
        held.end({ error: undefined, trailers })
        fail(endedBeforeContent())
      },
      fail(error) {
        held.end({ error, trailers: undefined })
        fail(error)
      },
    })
  })
}

/** The chunks before the start of a stream, and a source that continues with the rest. */
function createHeldChunks(source: BodySource) {
  const list = createChunkList()
  let sink: BodySink | undefined
  let end: End | undefined
  let size = 0
  let isPaused = false

  function finish(to: BodySink, { error, trailers }: End): void {
    if (error) to.fail(error)
    else to.end(trailers)
  }

  const replayed: BodySource = {
    start(to) {
      let flows = true
      for (const chunk of list.close()) flows = to.write(chunk)
      sink = to
      if (end) finish(to, end)
      else if (isPaused && flows) source.resume()
    },
    resume: () => source.resume(),
    cancel: () => source.cancel(),
    budget: source.budget,
  }
  return {
    source: replayed,
    size: () => size,
    write(chunk: Uint8Array): boolean {
      if (sink) return sink.write(chunk)
      list.add(chunk)
      size += chunk.byteLength
      isPaused = size >= maxHeldBytes
      return !isPaused
    },
    end(ending: End): void {
      end = ending
      if (sink) finish(sink, ending)
    },
  }
}

const lineFeed = 0x0a

function failedBeforeContent(): GatewayError {
  return new GatewayError('upstream_invalid', 'upstream reported an error before the first content')
}

function endedBeforeContent(): GatewayError {
  return new GatewayError('upstream_reset', 'upstream ended the stream before the first content')
}
