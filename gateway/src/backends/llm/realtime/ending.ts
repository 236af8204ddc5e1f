import type { Duplex } from 'node:stream'
import { closeCodes } from '../../../net/websocket/frame.ts'
import type { WebSocketPeer } from '../../../net/websocket/peer.ts'
import type { RealtimeResponses } from './responses.ts'
import { cancelEvent } from './server-event.ts'
import type { SessionEnd } from './session-watch.ts'

/** The end of a connection, by either side or by the gateway. */
export type Ending = {
  /** Closes both sides. */
  end(reason: SessionEnd): void
  /** Closes the side of the provider, after the usage of responses in progress. */
  endUpstream(reason: SessionEnd): void
  /** Closes both sides after the responses in progress, and starts no other. */
  drain(): void
  /** Called after the start of a response, which is cancelled if the client has disconnected. */
  responseStarted(id: unknown): void
  /** Called after the end of a response, or its refusal by the provider. */
  responseEnded(): void
  isDraining(): boolean
}

/** Longest wait for the usage of responses in progress after the client has disconnected. */
const lastUsageMs = 3_000

type Sides = {
  readonly client: WebSocketPeer
  readonly upstream: WebSocketPeer
  /** The connection to the provider. */
  readonly far: Duplex
  readonly responses: RealtimeResponses
}

export function createEnding({ client, upstream, far, responses }: Sides): Ending {
  let draining = false
  let upstreamEnd: SessionEnd | undefined
  const { isIdle } = responses

  function end({ code, reason }: SessionEnd): void {
    client.close(code, reason)
    endUpstream({ code: closeCodes.normal, reason: '' })
  }

  function endIfIdle(): void {
    if (isIdle()) end({ code: closeCodes.goingAway, reason: 'the gateway shuts down' })
  }

  function endUpstream(reason: SessionEnd): void {
    if (upstreamEnd !== undefined) return
    upstreamEnd = reason
    const close = () => upstream.close(reason.code, reason.reason)
    if (isIdle()) {
      close()
      return
    }
    for (const id of responses.activeIds()) void upstream.send(cancelEvent(id))
    const timer = setTimeout(close, lastUsageMs)
    far.once('close', () => clearTimeout(timer))
  }

  return {
    end,
    endUpstream,
    drain() {
      draining = true
      endIfIdle()
    },
    responseStarted(id) {
      if (upstreamEnd !== undefined) void upstream.send(cancelEvent(id))
    },
    responseEnded() {
      if (draining) endIfIdle()
      if (upstreamEnd !== undefined && isIdle()) upstream.close(upstreamEnd.code, upstreamEnd.reason)
    },
    isDraining: () => draining,
  }
}
