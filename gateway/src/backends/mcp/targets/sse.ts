import { createCancellation } from '../../../lib/cancellation.ts'
import { asGatewayError, GatewayError } from '../../../lib/gateway-error.ts'
import { type BodySource, isSource } from '../../../net/http/body.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { createSseParser, isEventStream, type SseEvent } from '../../../net/http/sse.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { exactlyOne, type Infer } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { TargetFailure } from '../message/message.ts'
import {
  type AddressContext,
  addressFields,
  addressVariants,
  checkAddress,
  compileAddress,
  type TargetAddress,
} from './address.ts'
import { createDuplexSession, type Wire, type WireListener } from './duplex/duplex.ts'
import { discard, readErrorReply } from './http-replies.ts'
import type { CallContext, Target } from './target.ts'

/** `mcp.targets[].sse`. */
export const sseSchema = exactlyOne(addressVariants, addressFields, {
  doc: 'Server with the HTTP+SSE transport of MCP 2024-11-05. Use `mcp` for newer servers.',
})

export type SseConfig = Infer<typeof sseSchema>

const defaultPath = '/sse'

/** Reports an invalid address. */
export function checkSse(config: SseConfig, report: ReportIssue): void {
  checkAddress(config, defaultPath, report)
}

export type SseContext = Pick<CompileContext, 'send' | 'log'> & AddressContext

const maxMessageBytes = 32 * 1024 * 1024
const maxErrorBytes = 64 * 1024
/** Time limit for response headers, and for the `endpoint` event. */
const responseTimeoutMs = 60_000
/** Idle limit of the stream, which is silent without session activity. */
const streamIdleMs = 24 * 60 * 60 * 1000
/** Maximum number of queued messages before the `endpoint` event. */
const maxEarlyMessages = 256

/** Target of the HTTP+SSE transport: messages are POST requests, responses arrive on one event stream. */
export function compileSse(targetName: string, config: SseConfig, context: SseContext): Target {
  const address = compileAddress(targetName, config, defaultPath, context)
  const { log, send } = context
  return {
    name: targetName,
    sessionless: false,
    open: () =>
      createDuplexSession({
        name: targetName,
        log,
        open: (listener, call) => openWire({ address, targetName, send, listener }, call),
        onInvalid: (_, problem) =>
          log.warn({ target: targetName, problem }, 'invalid MCP target event discarded'),
      }),
    // The stream is bound to this process.
    resume: () => undefined,
  }
}

type WireOptions = {
  address: TargetAddress
  targetName: string
  send: CompileContext['send']
  listener: WireListener
}

type Posted = (path: string | TargetFailure) => void

function openWire({ address, targetName, send, listener }: WireOptions, call: CallContext): Wire {
  /** POST path; undefined before the `endpoint` event. */
  let endpoint: string | undefined
  let early: Posted[] = []
  let source: BodySource | undefined
  let over = false
  let paused = false
  const cancellation = createCancellation()
  const endpointTimer = setTimeout(() => end('no endpoint event within the time limit'), responseTimeoutMs)

  const headers = { ...headersOf(call), accept: 'text/event-stream' }
  send({
    ...address,
    method: 'GET',
    headers,
    body: undefined,
    cancellation,
    firstByteTimeoutMs: responseTimeoutMs,
    idleTimeoutMs: streamIdleMs,
  }).then(connect, (error: unknown) => end(messageOf(error)))

  return {
    send(text, context, sent) {
      whenReady((path) => {
        if (typeof path === 'string') post(path, text, context).then(sent)
        else sent(path)
      })
    },
    pause() {
      paused = true
    },
    resume() {
      paused = false
      source?.resume()
    },
    close() {
      if (!over) release()
      flushEarly({ kind: 'ended', reason: 'the session was ended' })
      return Promise.resolve()
    },
  }

  function whenReady(posted: Posted): void {
    if (endpoint !== undefined) posted(endpoint)
    else if (over || early.length >= maxEarlyMessages) {
      const error = new GatewayError('upstream_connect', `target "${targetName}" is not connected`)
      queueMicrotask(() => posted({ kind: 'error', error }))
    } else early.push(posted)
  }

  function connect(reply: Reply): void {
    const { body } = reply
    if (over) {
      discard(reply)
    } else if (reply.status !== 200) {
      void refuse(reply)
    } else if (!isSource(body) || !isEventStream(reply.headers)) {
      discard(reply)
      end('the response is not an event stream')
    } else {
      source = body
      read(body)
    }
  }

  /** Fails queued messages with the server's HTTP error, for example 401. */
  async function refuse(reply: Reply): Promise<void> {
    const refusal = await refusalOf(reply)
    flushEarly(refusal)
    end(`status ${reply.status}`)
  }

  function read(body: BodySource): void {
    const parser = createSseParser({
      maxEventBytes: maxMessageBytes,
      onEvent: handleEvent,
      onError: (error) => end(error.message),
    })
    body.start({
      write(chunk) {
        parser.push(chunk)
        return !paused
      },
      end: () => end('its event stream ended'),
      fail: (error) => end(messageOf(error)),
    })
  }

  function handleEvent({ event = 'message', data }: SseEvent): void {
    if (over) return
    if (event === 'message') {
      listener.message(data)
    } else if (event === 'endpoint' && endpoint === undefined) {
      endpoint = endpointPath(data, address)
      if (endpoint === undefined) {
        end('the endpoint event has an invalid URL or another origin')
        return
      }
      clearTimeout(endpointTimer)
      flushEarly(endpoint)
    }
  }

  function flushEarly(outcome: string | TargetFailure): void {
    const waiting = early
    early = []
    for (const posted of waiting) posted(outcome)
  }

  async function post(
    path: string,
    text: string,
    context: CallContext | undefined,
  ): Promise<TargetFailure | undefined> {
    const request = {
      origin: address.origin,
      path,
      method: 'POST',
      headers: {
        ...headersOf(context ?? call),
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: text,
      firstByteTimeoutMs: responseTimeoutMs,
    }
    try {
      const reply = await send(request)
      if (reply.status < 200 || reply.status >= 300) return await refusalOf(reply)
      discard(reply)
      return undefined
    } catch (error) {
      return { kind: 'error', error: asGatewayError(error) }
    }
  }

  function end(reason: string): void {
    if (over) return
    release()
    listener.ended(reason)
    flushEarly({ kind: 'ended', reason })
  }

  function release(): void {
    over = true
    clearTimeout(endpointTimer)
    source?.cancel()
    cancellation.cancel()
  }
}

/**
 * POST path of the `endpoint` event; undefined for other origins, since the server must not redirect calls
 * elsewhere.
 */
function endpointPath(data: string, { origin, path }: TargetAddress): string | undefined {
  const url = URL.parse(data, origin + path)
  return url === null || url.origin !== origin ? undefined : url.pathname + url.search
}

function headersOf({ headers, protocolVersion }: CallContext): Headers {
  return {
    ...headers,
    'accept-encoding': 'identity',
    ...(protocolVersion === undefined ? {} : { 'mcp-protocol-version': protocolVersion }),
  }
}

async function refusalOf(reply: Reply): Promise<TargetFailure> {
  if (reply.status < 400) {
    discard(reply)
    const message = `unexpected status ${reply.status} of the target`
    return { kind: 'error', error: new GatewayError('upstream_invalid', message) }
  }
  try {
    return { kind: 'reply', reply: await readErrorReply(reply, maxErrorBytes) }
  } catch (error) {
    return { kind: 'error', error: asGatewayError(error) }
  }
}

function messageOf(error: unknown): string {
  return error instanceof GatewayError ? error.message : 'internal error'
}
