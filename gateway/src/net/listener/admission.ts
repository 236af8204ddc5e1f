import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'
import { clientNetwork } from '../../lib/address/client-network.ts'
import { createGauge, type Gauge } from '../../lib/planes/gauge.ts'
import { createKeyedGauge, type Entry } from '../../lib/planes/keyed-gauge.ts'
import type { Memory } from '../../lib/planes/memory.ts'

/** Limits on resources of clients, in all data planes together. */
export type AdmissionLimits = {
  readonly maxConnections: number
  /** Connections of one client network: an IPv4 address or an IPv6 /64. */
  readonly maxConnectionsPerClient: number
  /** Active requests on one HTTP/1 connection. */
  readonly maxPipelinedRequests: number
  /** Active requests on one HTTP/2 connection. */
  readonly maxConcurrentStreams: number
  /** Bytes of buffered request bodies; half of them for one client network. */
  readonly maxBufferedBytes: number
}

/** Meter of one limit. */
export type AdmissionMeter = {
  /** Adds to the amount in use. */
  changed(by: number): void
  refused(): void
}

export type AdmissionResource = 'connections' | 'connections_per_client' | 'requests' | 'buffered_bytes'

/** Admission control of connections and of the resources of their requests, shared by listeners. */
export type Admission = {
  readonly limits: AdmissionLimits
  /** Meter of active requests. */
  readonly requests: AdmissionMeter
  /**
   * Admits a connection from a peer address in plain form. Undefined at a limit; else `release` must be
   * called once, after the connection has closed. `isProxy`: the peer forwards requests of many clients.
   */
  connect(address: string, isProxy: boolean): AdmittedConnection | undefined
}

export type AdmittedConnection = {
  /**
   * Counts the connection for another client, which a proxy has reported. Returns false at the limit of that
   * client. Requires that no bytes are reserved.
   */
  moveTo(address: string, isProxy: boolean): boolean
  /** Releases the connection and the bytes still reserved. */
  release(): void
  /** Reserves memory for the body of a request; false at a limit. */
  acquireBytes(count: number): boolean
  releaseBytes(count: number): void
}

const minBufferedBytes = 64 * 1024 * 1024
/** Share of the memory of the machine, or of the container. */
const bufferedShare = 1 / 4

export const defaultAdmissionLimits: AdmissionLimits = {
  maxConnections: 10_000,
  maxConnectionsPerClient: 2_000,
  maxPipelinedRequests: 16,
  maxConcurrentStreams: 100,
  maxBufferedBytes: Math.max(minBufferedBytes, Math.floor(memoryBytes() * bufferedShare)),
}

/**
 * Creates admission control for all data planes together. `meterOf` creates the meter of each limit, for the
 * part of this data plane.
 */
export function createAdmission(
  limits: AdmissionLimits,
  meterOf: (resource: AdmissionResource) => AdmissionMeter,
  memory: Memory,
): Admission {
  const all = meterOf('connections')
  const perClient = meterOf('connections_per_client')
  const total = createGauge(memory, 'connections')
  const clients = createKeyedGauge(memory, 'connections by client', limits.maxConnections)
  const buffered = createBufferedBytes(limits.maxBufferedBytes, meterOf('buffered_bytes'), memory)
  const ofClient = { max: limits.maxConnectionsPerClient, maxTotal: limits.maxConnections }
  const ofProxy = { ...ofClient, max: Number.POSITIVE_INFINITY }

  return {
    limits,
    requests: meterOf('requests'),
    connect(address, isProxy) {
      const opened = open(address, isProxy, total)
      if (opened === undefined) return undefined
      let use = opened
      all.changed(1)
      return {
        acquireBytes: (count) => use.bytes.acquire(count),
        releaseBytes: (count) => use.bytes.release(count),
        moveTo(client, isOtherProxy) {
          const moved = open(client, isOtherProxy, countedAlready)
          if (moved === undefined) return false
          use.bytes.close()
          use.entry.close()
          use = moved
          return true
        },
        release() {
          use.bytes.close()
          use.entry.close()
          total.subtract(1)
          all.changed(-1)
        },
      }
    },
  }

  function open(address: string, isProxy: boolean, inTotal: Gauge) {
    const limits = isProxy ? ofProxy : ofClient
    const opened = clients.open(clientNetwork(address), { ...limits, total: inTotal })
    if (opened.kind === 'open') return { entry: opened.entry, bytes: buffered.of(opened.entry, isProxy) }
    const exceeded = opened.kind === 'key' ? perClient : all
    exceeded.refused()
    return undefined
  }
}

/** Total of a connection that moves from one client to another. */
const countedAlready: Gauge = { tryAdd: () => true, subtract() {}, total: () => 0 }

/** Bytes of one connection. */
type ConnectionBytes = {
  acquire(count: number): boolean
  release(count: number): void
  /** Releases all. */
  close(): void
}

type BufferedBytes = { of(client: Entry, isProxy: boolean): ConnectionBytes }

/** Limits buffered bytes in total, and those of a client to half of them. */
function createBufferedBytes(maxBytes: number, meter: AdmissionMeter, memory: Memory): BufferedBytes {
  const total = createGauge(memory, 'buffered bytes')
  const unit = unitOf(maxBytes)
  const max = Math.floor(maxBytes / unit)
  const maxOfClient = Math.floor(Math.ceil(maxBytes / 2) / unit)

  function acquireUnits(client: Entry, count: number, maxUnits: number): boolean {
    if (!client.tryAdd(count, maxUnits)) return false
    if (total.tryAdd(count, max)) return true
    client.subtract(count)
    return false
  }

  return {
    of(client, isProxy) {
      const maxUnits = isProxy ? max : maxOfClient
      let bytes = 0
      let units = 0
      let isOpen = true

      function release(count: number): void {
        if (!isOpen) return
        bytes -= count
        meter.changed(-count)
        const unused = units - Math.ceil(bytes / unit)
        if (unused === 0) return
        units -= unused
        client.subtract(unused)
        total.subtract(unused)
      }

      return {
        acquire(count) {
          if (!isOpen) return false
          const more = Math.ceil((bytes + count) / unit) - units
          if (more > 0 && !acquireUnits(client, more, maxUnits)) {
            meter.refused()
            return false
          }
          units += more
          bytes += count
          meter.changed(count)
          return true
        },
        release,
        close() {
          release(bytes)
          isOpen = false
        },
      }
    },
  }
}

/** Bytes counted as one, so that counts have 30 bits. */
function unitOf(maxBytes: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(maxBytes / 2 ** 30)))
}

/** Memory limit of the process if the system reports one, else the memory of the machine. */
function memoryBytes(): number {
  const limit = constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
