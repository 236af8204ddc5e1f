import type { MetricRegistry } from './families.ts'
import { createMeters } from './meters.ts'

/**
 * End of a TCP connection: in order, by an error, rejected by the gateway, or without a reachable backend.
 */
export type TcpOutcome = 'complete' | 'broken' | 'refused' | 'unavailable'

/** Meter of one TCP route. */
export type TcpMeter = {
  opened(): void
  closed(outcome: TcpOutcome): void
  /** Bytes forwarded from the client. */
  received(bytes: number): void
  /** Bytes forwarded to the client. */
  sent(bytes: number): void
}

export function createTcpMeters(registry: MetricRegistry): (route: string) => TcpMeter {
  const openConnections = registry.gauge({
    name: 'tollgate_tcp_connections_open',
    help: 'Open TCP connections.',
    labels: ['route'],
  })
  const closedConnections = registry.counter({
    name: 'tollgate_tcp_connections_total',
    help: 'Closed TCP connections by outcome.',
    labels: ['route', 'outcome'],
  })
  const bytes = registry.counter({
    name: 'tollgate_tcp_bytes_total',
    help: 'Bytes forwarded between TCP clients and backends.',
    labels: ['route', 'direction'],
  })
  return createMeters((route) => {
    const open = openConnections.slot(route)
    const received = bytes.slot(route, 'received')
    const sent = bytes.slot(route, 'sent')
    const outcomes = new Set<TcpOutcome>()
    return {
      meter: {
        opened() {
          open.value += 1
        },
        closed(outcome) {
          open.value -= 1
          outcomes.add(outcome)
          closedConnections.slot(route, outcome).value += 1
        },
        received(count) {
          received.value += count
        },
        sent(count) {
          sent.value += count
        },
      },
      drop() {
        openConnections.drop(route)
        bytes.drop(route, 'received')
        bytes.drop(route, 'sent')
        for (const outcome of outcomes) closedConnections.drop(route, outcome)
      },
    }
  })
}
