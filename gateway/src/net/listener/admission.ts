import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'
import { clientNetwork } from '../../lib/address/client-network.ts'

/** Bounds on what clients can occupy. */
export type AdmissionLimits = {
  readonly maxConnections: number
  /** Connections of one client network: an IPv4 address or an IPv6 /64. */
  readonly maxConnectionsPerClient: number
  /** Requests under way on one HTTP/1 connection. */
  readonly maxPipelinedRequests: number
  /** Requests under way on one HTTP/2 connection. */
  readonly maxConcurrentStreams: number
  /** Bytes of request bodies that are collected in memory; half of them for one client network. */
  readonly maxBufferedBytes: number
}

/** Instruments of one bound. */
export type AdmissionMeter = {
  /** A change of what is in use. */
  changed(by: number): void
  refused(): void
}

export type AdmissionResource = 'connections' | 'connections_per_client' | 'requests' | 'buffered_bytes'

/** Admits connections to the listeners that share it, and what their requests occupy. */
export type Admission = {
  readonly limits: AdmissionLimits
  /** Instruments of requests under way. */
  readonly requests: AdmissionMeter
  /**
   * Admits a connection from a peer address in plain form. Undefined if a bound is reached; else `release` must be called once, when the
   * connection has closed. `isProxy`: the peer carries the requests of many clients.
   */
  connect(address: string, isProxy: boolean): AdmittedConnection | undefined
}

export type AdmittedConnection = {
  /** Returns the connection and the bytes that it still occupies. */
  release(): void
  /** Occupies memory for the body of a request; false if a bound is reached. */
  acquireBytes(count: number): boolean
  releaseBytes(count: number): void
}

type Client = { connections: number; bytes: number; readonly maxBytes: number }

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

/** `meterOf` creates the instruments of each bound. */
export function createAdmission(
  limits: AdmissionLimits,
  meterOf: (resource: AdmissionResource) => AdmissionMeter,
): Admission {
  const all = meterOf('connections')
  const perClient = meterOf('connections_per_client')
  const buffered = meterOf('buffered_bytes')
  /** By network; contains clients with an open connection. */
  const clients = new Map<string, Client>()
  let connections = 0
  let bytes = 0

  function admitted(network: string, client: Client): AdmittedConnection {
    let own = 0
    let isOpen = true

    function changeBytes(by: number): void {
      own += by
      bytes += by
      client.bytes += by
      buffered.changed(by)
    }

    return {
      release() {
        isOpen = false
        changeBytes(-own)
        connections -= 1
        client.connections -= 1
        all.changed(-1)
        if (client.connections === 0) clients.delete(network)
      },
      acquireBytes(count) {
        const fits = bytes + count <= limits.maxBufferedBytes && client.bytes + count <= client.maxBytes
        if (!fits) buffered.refused()
        if (fits && isOpen) changeBytes(count)
        return fits && isOpen
      },
      releaseBytes(count) {
        if (isOpen) changeBytes(-count)
      },
    }
  }

  return {
    limits,
    requests: meterOf('requests'),
    connect(address, isProxy) {
      if (connections >= limits.maxConnections) {
        all.refused()
        return undefined
      }
      const network = clientNetwork(address)
      const client = clients.get(network) ?? newClient(limits, isProxy)
      if (!isProxy && client.connections >= limits.maxConnectionsPerClient) {
        perClient.refused()
        return undefined
      }
      clients.set(network, client)
      client.connections += 1
      connections += 1
      all.changed(1)
      return admitted(network, client)
    },
  }
}

function newClient({ maxBufferedBytes }: AdmissionLimits, isProxy: boolean): Client {
  return { connections: 0, bytes: 0, maxBytes: isProxy ? maxBufferedBytes : Math.ceil(maxBufferedBytes / 2) }
}

/** Memory limit of the process as far as the system reports one, else the memory of the machine. */
function memoryBytes(): number {
  const limit = constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
