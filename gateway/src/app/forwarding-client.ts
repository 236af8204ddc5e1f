import { createHttpClient, type HttpClient } from '../net/http-client/http-client.ts'

/** Creates the client of requests of the admin API to listeners of this process. */
export function createForwardingClient(): HttpClient {
  return createHttpClient({
    connectTimeoutMs: 5_000,
    keepAliveMs: 5_000,
    firstByteTimeoutMs: 660_000,
    idleTimeoutMs: 660_000,
    // One for each server name.
    maxPools: 100,
    maxConnections: 200,
    maxQueue: 50,
    unusedPoolMs: 60_000,
  })
}
