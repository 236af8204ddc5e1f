import { totalmem } from 'node:os'
import { constrainedMemory } from 'node:process'
import { clientNetwork } from '../../lib/address/client-network.ts'

/** Limits on resources of clients. */
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
  /** Releases the connection and the bytes still reserved. */
  release(): void
  /** Reserves memory for the body of a request; false at a limit. */
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

/** Creates admission control. `meterOf` creates the meter of each limit. */
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

/** Memory limit of the process if the system reports one, else the memory of the machine. */
function memoryBytes(): number {
  const limit = constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
