import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import type { HttpServerLimits } from '../http/incoming-request.ts'
import type { Admission } from '../listener/admission.ts'
import type { HttpConnection } from '../listener/connection-handler.ts'
import type { ConnectionSettings } from '../listener/connection-settings.ts'
import { handleExchange } from './exchange.ts'

/** HTTP/2 on connections accepted elsewhere. */
export type Http2 = {
  /**
   * Requires a client that selected HTTP/2 by ALPN, or by the preface, which is still unread in the socket.
   */
  accept(socket: Socket, connection: HttpConnection): void
  /** Accepts no new streams and closes each connection after its last stream. */
  drain(): void
}

const maxHeaderFields = 200
/** Memory limit per session for streams, headers and unsent responses, in megabytes. */
const maxSessionMegabytes = 10
/** RFC 9113 section 6.5.3: limit for the acknowledgement of settings. */
const settingsLimitMs = 10_000
/** Longest wait for the acknowledgement of GOAWAY. */
const goawayNoticeMs = 1_000
/** Longest wait for the acknowledgement of a ping. */
const defaultPingTimeoutMs = 20_000
const lastStreamId = 2 ** 31 - 1

type Http2Options = { clock: Clock; limits: HttpServerLimits; admission: Admission }

export function createHttp2({ clock, limits, admission }: Http2Options): Http2 {
  const { maxConcurrentStreams } = admission.limits
  const sessions = new Set<ServerHttp2Session>()
  const sessionOptions = {
    maxSessionMemory: maxSessionMegabytes,
    maxHeaderListPairs: maxHeaderFields,
    settings: { maxConcurrentStreams, maxHeaderListSize: limits.maxHeaderBytes, enablePush: false },
    // Rapid reset (CVE-2023-44487): streams opened only to be reset cost work.
    streamResetBurst: 1000,
    streamResetRate: 33,
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
  }
  let draining = false

  function optionsOf(settings: ConnectionSettings | undefined) {
    if (settings === undefined) return sessionOptions
    const { windowSize, maxFrameSize, maxHeaderBytes } = settings.http2
    return {
      ...sessionOptions,
      settings: {
        ...sessionOptions.settings,
        ...(windowSize === undefined ? {} : { initialWindowSize: windowSize }),
        ...(maxFrameSize === undefined ? {} : { maxFrameSize }),
        ...(maxHeaderBytes === undefined ? {} : { maxHeaderListSize: maxHeaderBytes }),
      },
    }
  }

  function open(session: ServerHttp2Session, connection: HttpConnection): void {
    let streams = 0
    let idleSince = clock.monotonic()
    const { settings } = connection
    const { maxHeaderBytes = limits.maxHeaderBytes } = settings?.http2 ?? {}
    const own = maxHeaderBytes === limits.maxHeaderBytes ? limits : { ...limits, maxHeaderBytes }
    sessions.add(session)
    const release = settings && applySettings(session, settings, () => streams > 0)
    session.on(
      'stream',
      (stream: ServerHttp2Stream, _headers: IncomingHttpHeaders, _flags: number, lines: string[]) => {
        streams += 1
        stream.on('close', () => {
          streams -= 1
          idleSince = clock.monotonic()
        })
        // A failed stream also closes, which is handled.
        stream.on('error', ignore)
        if (stream.destroyed || stream.closed) return
        handleExchange(stream, lines, { connection, clock, limits: own, requests: admission.requests })
      },
    )
    // A failed session closes its streams and itself.
    session.on('error', ignore)
    const idleCheck = setInterval(() => {
      if (streams === 0 && clock.monotonic() - idleSince >= limits.keepAliveMs) session.close()
    }, limits.keepAliveMs / 4)
    const settingsCheck = setTimeout(() => {
      if (session.pendingSettingsAck) session.destroy(undefined, constants.NGHTTP2_SETTINGS_TIMEOUT)
    }, settingsLimitMs)
    session.on('close', () => {
      sessions.delete(session)
      clearInterval(idleCheck)
      clearTimeout(settingsCheck)
      release?.()
    })
    if (draining) shutDown(session)
  }

  return {
    accept(socket, connection) {
      const session = performServerHandshake(socket, optionsOf(connection.settings))
      // The socket permits half-open connections for HTTP/1. In HTTP/2 the end of input ends the session.
      socket.on('end', () => session.destroy())
      open(session, connection)
    },
    drain() {
      draining = true
      for (const session of sessions) shutDown(session)
    },
  }
}

/** Applies the settings of a configuration to a session; returns a function that stops its timers. */
function applySettings(
  session: ServerHttp2Session,
  { maxDurationMs, http2 }: ConnectionSettings,
  isInUse: () => boolean,
): () => void {
  const { connectionWindowSize, pingIntervalMs, pingTimeoutMs = defaultPingTimeoutMs } = http2
  if (connectionWindowSize !== undefined) session.setLocalWindowSize(connectionWindowSize)
  const age = maxDurationMs === undefined ? undefined : setTimeout(() => shutDown(session), maxDurationMs)
  let pending: NodeJS.Timeout | undefined
  const ping = () => {
    if (session.destroyed || pending !== undefined || !isInUse()) return
    pending = setTimeout(() => session.destroy(), pingTimeoutMs)
    session.ping(() => {
      clearTimeout(pending)
      pending = undefined
    })
  }
  const pings = pingIntervalMs === undefined ? undefined : setInterval(ping, pingIntervalMs)
  return () => {
    clearTimeout(age)
    clearTimeout(pending)
    clearInterval(pings)
  }
}

/**
 * Graceful shutdown by RFC 9113 section 6.8: streams may be in flight during GOAWAY, so the first GOAWAY
 * names the highest stream id, and the final one follows the acknowledgement.
 */
function shutDown(session: ServerHttp2Session): void {
  if (session.closed || session.destroyed) return
  session.goaway(constants.NGHTTP2_NO_ERROR, lastStreamId)
  const timer = setTimeout(() => session.close(), goawayNoticeMs)
  session.on('close', () => clearTimeout(timer))
  session.ping(() => {
    if (!session.destroyed) session.close()
  })
}

function ignore(): void {}
