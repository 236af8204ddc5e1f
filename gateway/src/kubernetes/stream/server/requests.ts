import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../telemetry/log.ts'
import { type AuthorizedRequest, createAuthorization } from './authorize.ts'
import type { ChannelPublisher } from './publisher.ts'
import { readAcknowledgement } from './read-acknowledgement.ts'
import { createStreamConnection, type StreamTimes } from './stream-connection.ts'
import type { VerifyToken } from './verify-token.ts'

export type RequestOptions = {
  readonly publisher: ChannelPublisher
  readonly verify: VerifyToken
  serviceAccountOf(gateway: string): string
  readonly clock: Clock
  readonly log: Log
  readonly times: StreamTimes & {
    /** Interval at which tokens of open streams are verified again. */
    readonly verifyEveryMs: number
  }
}

export type RequestHandler = {
  handle(response: ServerHttp2Stream, headers: IncomingHttpHeaders): void
  /** Ends all configuration streams. */
  closeStreams(reason: string): void
}

/** Lead before the expiry of a token, so that a stream never outlives it. */
const expiryLeadMs = 1_000
/** Shortest time between two warnings about refusals of one Gateway. */
const warnEveryMs = 1_000

/** Creates the handler of `GET /v1/config` and `POST /v1/ack`. */
export function createRequestHandler(options: RequestOptions): RequestHandler {
  const { publisher, clock, log, times } = options
  const authorize = createAuthorization(options)
  const open = new Set<(reason: string) => void>()
  /** Times of the last warnings. */
  const warned = new WeakMap<object, number>()

  async function respond(response: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    const authorized = await authorize(headers)
    if (authorized.kind === 'refused') {
      const { status, message, gateway } = authorized
      log.warn({ status, gateway, reason: message }, 'configuration stream request refused')
      reply(response, status, message)
      return
    }
    const place = `${headers[':method']} ${authorized.path}`
    if (place === 'GET /v1/config') startStream(authorized, response)
    else if (place === 'POST /v1/ack') await acknowledge(authorized, response)
    else reply(response, 404, 'not found')
  }

  function startStream(request: AuthorizedRequest, response: ServerHttp2Stream): void {
    if (response.destroyed) return
    const { gateway, proxy, id, resume } = request
    const channel = publisher.channelOf(gateway)
    const stream = createStreamConnection({ ...times, response, channel, resume })
    const remove = channel.connections.add({ id, name: proxy, connectedAt: clock.now(), stream })
    if (remove === undefined) {
      reply(response, 503, 'too many proxies of this Gateway')
      return
    }
    open.add(stream.close)
    const stopVerification = verifyRegularly(request, stream.close)
    response.once('close', () => {
      stopVerification()
      open.delete(stream.close)
      remove()
      publisher.release(gateway)
      log.info({ gateway, proxy }, 'configuration stream closed')
    })
    response.respond({
      ':status': 200,
      'content-type': 'application/x-ndjson',
      'content-encoding': 'zstd',
      'cache-control': 'no-store',
    })
    const isCurrent = resume !== undefined && resume === channel.version
    log.info({ gateway, proxy, isCurrent }, 'configuration stream opened')
    stream.wake()
  }

  /** Verifies the token of a stream at intervals, and at its expiry, where it is refused. */
  function verifyRegularly(request: AuthorizedRequest, close: (reason: string) => void): () => void {
    let isOver = false
    let { expiresAt } = request
    let timer = setTimeout(verify, delayOf(expiresAt))

    async function verifyOnce(): Promise<string | undefined> {
      if (expiresAt - expiryLeadMs <= clock.now()) return 'the token expires'
      const verdict = await request.verifyAgain()
      // During an outage of the API server the stream lasts as long as its token.
      if (verdict.kind === 'verified') expiresAt = verdict.expiresAt
      return verdict.kind === 'refused' ? verdict.reason : undefined
    }

    function verify(): void {
      verifyOnce().then((reason) => {
        if (isOver) return
        if (reason === undefined) timer = setTimeout(verify, delayOf(expiresAt))
        else close(reason)
      })
    }

    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }

  function delayOf(expiresAt: number): number {
    return Math.max(0, Math.min(times.verifyEveryMs, expiresAt - expiryLeadMs - clock.now()))
  }

  async function acknowledge(
    { gateway, id, proxy }: AuthorizedRequest,
    response: ServerHttp2Stream,
  ): Promise<void> {
    const report = await readAcknowledgement(response)
    if (report.kind === 'refused') {
      reply(response, report.status, report.message)
      return
    }
    const { serving, refused } = report
    const { connections } = publisher.channelOf(gateway)
    const outcome = connections.acknowledge(id, { serving, refused }, clock.now())
    publisher.release(gateway)
    if (outcome === 'unknown') {
      reply(response, 409, 'no stream of this proxy is open here')
      return
    }
    const now = clock.monotonic()
    const isLogged = now - (warned.get(connections) ?? Number.NEGATIVE_INFINITY) < warnEveryMs
    if (refused !== undefined && outcome === 'changed' && !isLogged) {
      const { version, errors } = refused
      warned.set(connections, now)
      log.warn({ gateway, proxy, version, errors }, 'configuration refused by proxy')
    }
    reply(response, 204, undefined)
  }

  return {
    handle(response, headers) {
      response.on('error', () => response.destroy())
      respond(response, headers).catch((error: unknown) => {
        if (!response.destroyed) log.error({ err: error }, 'configuration stream request failed')
        response.destroy()
      })
    },
    closeStreams(reason) {
      for (const close of [...open]) close(reason)
    },
  }
}

function reply(response: ServerHttp2Stream, status: number, message: string | undefined): void {
  if (response.destroyed) return
  if (message === undefined) {
    response.respond({ ':status': status }, { endStream: true })
    return
  }
  response.respond({ ':status': status, 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: message }))
}
