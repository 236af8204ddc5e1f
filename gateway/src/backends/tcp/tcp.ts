import { createGauge } from '../../lib/planes/gauge.ts'
import type { Connection } from '../../net/listener/connection.ts'
import type { TcpConnection } from '../../net/listener/connection-handler.ts'
import { reset } from '../../net/tcp/splice.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import { attachedHostnames } from '../../pipeline/routing/hostnames.ts'
import { compileListenerTable } from '../../pipeline/routing/listener-table.ts'
import { describeError } from '../../telemetry/log.ts'
import type { TcpMeter, TcpOutcome } from '../../telemetry/metrics/tcp.ts'
import { forwardConnection, type TcpTarget } from './forward.ts'

export type TcpRoute = {
  readonly name: string
  /** Server names of the route; an empty list matches all connections. */
  readonly hostnames: readonly string[]
  /** The current targets, which may change between connections. */
  targets(connection?: Connection): readonly TcpTarget[]
}

/** The routes that are attached to one of the listeners of a port. */
export type TcpAttachment = {
  /** Server name of the listener; undefined matches all connections. */
  readonly hostname: string | undefined
  readonly routes: readonly TcpRoute[]
}

export type TcpPortOptions = {
  /** Key of the port across reloads. */
  readonly place: string
  /** Limit on concurrent connections of the process; more are refused. */
  readonly maxConnections?: number
  /** Limit on the time without data in either direction. */
  readonly idleTimeoutMs?: number
}

/** Each needs two file descriptors and, with a stalled reader, a few hundred kilobytes. */
const defaultMaxConnections = 10_000
const defaultIdleTimeoutMs = 3_600_000

/**
 * Compiles the handler of the connections of a port. The server name selects the listener with the most
 * specific hostname, then its route with the most specific hostname, the first on equal ones; connections
 * without a server name match only entries for all. Without a route the connection is closed. Each connection
 * writes one log line at its end, and continues across reloads.
 */
export function compileTcpRoutes(
  listeners: readonly TcpAttachment[],
  context: CompileContext,
  options: TcpPortOptions,
): (connection: TcpConnection) => void {
  const { clock, metrics, random } = context
  const { place, maxConnections = defaultMaxConnections, idleTimeoutMs = defaultIdleTimeoutMs } = options
  const name = `tcp connections ${place}`
  const open = context.retained(name, () => createGauge(context.memory, name))
  const unrouted: CompiledRoute = { name: '', targets: () => [], meter: metrics.tcp('') }
  const routesOf = compileListenerTable(
    listeners.map(({ hostname, routes }) => ({ hostname, target: compileRoutes(routes, hostname, context) })),
  )

  return ({ socket, connection }) => {
    const serverName = connection.serverName ?? ''
    const route = routesOf(serverName)?.(serverName)
    const { targets, meter } = route ?? unrouted
    const line: ConnectionLine = {
      route: route?.name ?? '',
      client: connection.address,
      serverName: connection.serverName,
      startedAt: clock.monotonic(),
      bytesReceived: 0,
      bytesSent: 0,
    }
    meter.opened()
    if (route === undefined) return refuse('no route for this connection')
    if (!open.tryAdd(1, maxConnections)) return refuse('too many connections')
    forwardConnection(socket, targets(connection), {
      random,
      idleTimeoutMs,
      onReceived(bytes) {
        line.bytesReceived += bytes
        meter.received(bytes)
      },
      onSent(bytes) {
        line.bytesSent += bytes
        meter.sent(bytes)
      },
      onEnd({ outcome, backend, attempts, failure }) {
        open.subtract(1)
        meter.closed(outcome)
        write(context, line, { outcome, backend, attempts, failure })
      },
    })

    function refuse(refusedBy: string): void {
      socket.on('error', ignore)
      reset(socket)
      meter.closed('refused')
      write(context, line, { outcome: 'refused', refusedBy })
    }
  }
}

/** Compiles the selection of a route by server name on one listener. */
function compileRoutes(
  routes: readonly TcpRoute[],
  listenerHostname: string | undefined,
  { metrics }: CompileContext,
): (serverName: string) => CompiledRoute | undefined {
  const entries = routes.flatMap(({ name, hostnames, targets }) => {
    const target: CompiledRoute = { name, targets, meter: metrics.tcp(name) }
    return (attachedHostnames(listenerHostname, hostnames) ?? []).map((hostname) => ({ hostname, target }))
  })
  return compileListenerTable(entries)
}

type CompiledRoute = {
  readonly name: string
  readonly targets: TcpRoute['targets']
  readonly meter: TcpMeter
}

type ConnectionLine = {
  readonly route: string
  readonly client: string
  readonly serverName: string | undefined
  readonly startedAt: number
  bytesReceived: number
  bytesSent: number
}

type Ending = {
  readonly outcome: TcpOutcome
  readonly backend?: string | undefined
  readonly attempts?: number
  readonly refusedBy?: string
  readonly failure?: unknown
}

/** Writes the log line of a connection, with the field names of request lines. */
function write({ clock, log }: CompileContext, line: ConnectionLine, ending: Ending): void {
  const { startedAt, serverName, ...fields } = line
  const { outcome, backend, attempts = 0, refusedBy, failure } = ending
  log.info(
    {
      ...fields,
      ...(serverName === undefined ? {} : { serverName }),
      ...(backend === undefined ? {} : { backend }),
      ...(attempts > 1 ? { attempts } : {}),
      durationMs: Math.round((clock.monotonic() - startedAt) * 100) / 100,
      outcome,
      ...(refusedBy === undefined ? {} : { refusedBy }),
      ...(failure === undefined ? {} : { error: describeError(failure) }),
    },
    'connection',
  )
}

/** Errors of a refused connection have no receiver. */
function ignore(): void {}
