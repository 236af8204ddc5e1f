import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { GatewayError } from '../../lib/gateway-error.ts'
import { type ConnectTarget, connect } from '../../net/tcp/connect.ts'
import { configureSocket } from '../../net/tcp/dial.ts'
import { reset, type SpliceOutcome, splice } from '../../net/tcp/splice.ts'
import type { TcpOutcome } from '../../telemetry/metrics/tcp.ts'
import type { Health } from '../../upstream/health.ts'
import { chooseWeighted } from '../../upstream/weighted-choice.ts'

/** A backend of a TCP route. */
export type TcpTarget = {
  readonly name: string
  /** Share of the connections; 0 is never chosen. */
  readonly weight: number
  /** Undefined without health policy. */
  readonly health?: Pick<Health, 'isEjected' | 'succeeded' | 'failed'> | undefined
  /** Undefined resets connections. */
  readonly dial: ConnectTarget | undefined
}

export type ForwardOptions = {
  /** A number in [0, 1). */
  random(): number
  readonly idleTimeoutMs: number
  onReceived(bytes: number): void
  onSent(bytes: number): void
  /** Called once, after both connections have closed. */
  onEnd(end: ConnectionResult): void
}

export type ConnectionResult = {
  readonly outcome: TcpOutcome
  /** The connected backend. */
  readonly backend: string | undefined
  /** Number of backends tried. */
  readonly attempts: number
  /** For the log only. */
  readonly failure: unknown
}

/**
 * Forwards a client connection to a target chosen by weight. An unreachable target is replaced until each was
 * tried once, ejected ones last; data of the client remains unread meanwhile.
 */
export function forwardConnection(
  client: Duplex,
  targets: readonly TcpTarget[],
  options: ForwardOptions,
): void {
  const { random, idleTimeoutMs, onReceived, onSent, onEnd } = options
  let attempts = 0
  let cancelDial: (() => void) | undefined
  let clientError: Error | undefined

  client.on('error', onClientError)
  client.on('close', onClientClose)
  if (client instanceof Socket) configureSocket(client)
  attempt(targets, new GatewayError('upstream_connect', 'the route has no backends'))

  function attempt(untried: readonly TcpTarget[], lastFailure: GatewayError): void {
    const target = chooseWeighted(untried.filter(isHealthy), random()) ?? chooseWeighted(untried, random())
    if (target?.dial === undefined) {
      const failure = target === undefined ? lastFailure : new GatewayError('upstream_connect', rejected)
      client.off('close', onClientClose)
      reset(client)
      onEnd({ outcome: 'unavailable', backend: undefined, attempts, failure })
      return
    }
    attempts += 1
    cancelDial = connect(target.dial, (result) => {
      if (result instanceof GatewayError) {
        target.health?.failed()
        attempt(without(untried, target), result)
        return
      }
      target.health?.succeeded()
      join(target.name, result)
    })
  }

  function join(backend: string, upstream: Socket): void {
    client.off('error', onClientError)
    client.off('close', onClientClose)
    splice(client, upstream, {
      idleTimeoutMs,
      onReceived,
      onSent,
      onEnd(outcome) {
        const complete = outcome.kind === 'complete'
        onEnd({
          outcome: complete ? 'complete' : 'broken',
          backend,
          attempts,
          failure: complete ? undefined : describeBreak(outcome, idleTimeoutMs),
        })
      },
    })
  }

  function onClientError(error: Error): void {
    clientError = error
  }

  function onClientClose(): void {
    cancelDial?.()
    const failure = clientError ?? new Error('the client left before a backend was reached')
    onEnd({ outcome: 'broken', backend: undefined, attempts, failure })
  }
}

const rejected = 'the chosen backend has no server'

function describeBreak(
  outcome: Exclude<SpliceOutcome, { kind: 'complete' }>,
  idleTimeoutMs: number,
): GatewayError {
  if (outcome.kind === 'idle')
    return new GatewayError('upstream_timeout', `no byte in either direction for ${idleTimeoutMs} ms`)
  const { by, error: cause } = outcome
  return by === 'client'
    ? new GatewayError('request_aborted', 'the client broke the connection', { cause })
    : new GatewayError('upstream_reset', 'the backend broke the connection', { cause })
}

function isHealthy({ health }: TcpTarget): boolean {
  return health?.isEjected() !== true
}

function without(targets: readonly TcpTarget[], tried: TcpTarget): readonly TcpTarget[] {
  return targets.filter((target) => target !== tried)
}
