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
  /** Server names it is for; none stands for all connections. */
  readonly hostnames: readonly string[]
  readonly targets: readonly TcpTarget[]
}

/** The routes that are attached to one of the listeners of a port. */
export type TcpAttachment = {
  /** Server names the listener is for; undefined for all connections. */
  readonly hostname: string | undefined
  readonly routes: readonly TcpRoute[]
}

export type TcpPortOptions = {
  /** Names the port across reloads. */
  readonly place: string
  /** Connections at once; more are refused. */
  readonly maxConnections?: number
  /** Longest time without a byte in either direction. */
  readonly idleTimeoutMs?: number
}

/** Each needs two file descriptors and, where nobody reads, a few hundred kilobytes. */
const defaultMaxConnections = 10_000
const defaultIdleTimeoutMs = 3_600_000

/**
 * What takes over the connections of a port. The server name chooses the listener with the most specific hostname, and on
 * that one the route with the most specific hostname, of equal ones the first; a connection without a server name is for those that
 * are for all. Without a route it is closed. Each leaves one line in the log when it ends, and outlives the configuration it began with.
 */
export function compileTcpRoutes(
  listeners: readonly TcpAttachment[],
  context: CompileContext,
  options: TcpPortOptions,
): (connection: TcpConnection) => void {
  const { clock, metrics, random } = context
  const { place, maxConnections = defaultMaxConnections, idleTimeoutMs = defaultIdleTimeoutMs } = options
  const open = context.retained(`tcp connections ${place}`, () => ({ count: 0 }))
  const unrouted: CompiledRoute = { name: '', targets: [], meter: metrics.tcp('') }
  const routesOf = compileListenerTable(
    listeners.map(({ hostname, routes }) => ({ hostname, target: compileRoutes(routes, hostname, context) })),
  )

  return ({ socket, connection }) => {
    const serverName = connection.serverName ?? ''
    const route = routesOf(serverName)?.(serverName)
    const { name, targets, meter } = route ?? unrouted
    const line: ConnectionLine = {
      route: name,
      client: connection.address,
      serverName: connection.serverName,
      startedAt: clock.monotonic(),
      bytesReceived: 0,
      bytesSent: 0,
    }
    meter.opened()
    if (route === undefined) return refuse('no route for this connection')
    if (open.count >= maxConnections) return refuse('too many connections')
    open.count += 1
    forwardConnection(socket, targets, {
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
        open.count -= 1
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

/** The route of a server name on one listener. */
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
  readonly targets: readonly TcpTarget[]
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

/** The one line of a connection, named as in the lines of requests. */
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

/** A connection that is refused has nobody left to tell that it broke. */
function ignore(): void {}
