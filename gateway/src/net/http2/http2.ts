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
import { handleExchange } from './exchange.ts'

/** Speaks HTTP/2 on connections that others accept. */
export type Http2 = {
  /** The client has said that it speaks HTTP/2: by ALPN, or with the preface that still lies in the socket. */
  accept(socket: Socket, connection: HttpConnection): void
  /** Takes no new streams and closes each connection once its streams are over. */
  drain(): void
}

const maxHeaderFields = 200
/** For what a session keeps of a client's streams, headers and unsent answers, in megabytes. */
const maxSessionMegabytes = 10
/** RFC 9113 section 6.5.3: who does not acknowledge settings is not held by them. */
const settingsLimitMs = 10_000
/** Longest wait for a client to take note that no new streams are accepted. */
const goawayNoticeMs = 1_000
const lastStreamId = 2 ** 31 - 1

type Http2Options = { clock: Clock; limits: HttpServerLimits; admission: Admission }

export function createHttp2({ clock, limits, admission }: Http2Options): Http2 {
  const { maxConcurrentStreams } = admission.limits
  const sessions = new Set<ServerHttp2Session>()
  const sessionOptions = {
    maxSessionMemory: maxSessionMegabytes,
    maxHeaderListPairs: maxHeaderFields,
    settings: { maxConcurrentStreams, maxHeaderListSize: limits.maxHeaderBytes, enablePush: false },
    // A client that opens streams only to reset them makes work for free (CVE-2023-44487).
    streamResetBurst: 1000,
    streamResetRate: 33,
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
  }
  let draining = false

  function open(session: ServerHttp2Session, connection: HttpConnection): void {
    let streams = 0
    let idleSince = clock.monotonic()
    sessions.add(session)
    session.on(
      'stream',
      (stream: ServerHttp2Stream, _headers: IncomingHttpHeaders, _flags: number, lines: string[]) => {
        streams += 1
        stream.on('close', () => {
          streams -= 1
          idleSince = clock.monotonic()
        })
        // A stream that breaks also closes, which is where it is dealt with.
        stream.on('error', ignore)
        if (stream.destroyed || stream.closed) return
        handleExchange(stream, lines, { connection, clock, limits, requests: admission.requests })
      },
    )
    // A session that breaks closes its streams and itself.
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
    })
    if (draining) shutDown(session)
  }

  return {
    accept(socket, connection) {
      const session = performServerHandshake(socket, sessionOptions)
      // A connection may be half open for HTTP/1's sake. A client that sends no more reads no more in HTTP/2.
      socket.on('end', () => session.destroy())
      open(session, connection)
    },
    drain() {
      draining = true
      for (const session of sessions) shutDown(session)
    },
  }
}

/**
 * RFC 9113 section 6.8: streams may be on their way while the client is told to open no more. So it is told first, and
 * the last stream is only named once it must have heard.
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
