import { type ApiHandler, createAdmin } from '../admin/admin.ts'
import { createReadiness, createStats, type RenderMetrics } from '../admin/probes.ts'
import { processAddresses } from '../config/ports.ts'
import type { Config } from '../config/schema.ts'
import { openServer } from '../data-plane/open-server.ts'
import { parseHostPort } from '../lib/address/host-port.ts'
import type { Clock } from '../lib/clock.ts'
import { createLocalMemory } from '../lib/planes/memory.ts'
import { defaultServerLimits, type IncomingRequest } from '../net/http/incoming-request.ts'
import type { Reply } from '../net/http-client/send.ts'
import { createAdmission, defaultAdmissionLimits } from '../net/listener/admission.ts'
import type { ConnectionHandler } from '../net/listener/connection-handler.ts'
import type { ListeningServer } from '../net/listener/listener.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'

/** Admin, metrics and readiness addresses: open from start to shutdown. */
export type ProcessServers = {
  /** Port of the admin address; 0 before it is open. */
  adminPort(): number
  /** Opens the three addresses. Rejects if one of them cannot be opened. */
  open(options: ProcessServerOptions): Promise<void>
  close(): void
}

export type ProcessServerOptions = {
  settings: NonNullable<Config['config']>
  api: ApiHandler
  /** Renders the metrics of the process. */
  render: RenderMetrics
  /** Parts of the gateway that are not ready. */
  pending(): readonly string[]
}

/** Connections to the three addresses together. */
const limits = { ...defaultAdmissionLimits, maxConnections: 1_000, maxConnectionsPerClient: 500 }

export function createProcessServers(clock: Clock, metrics: Metrics): ProcessServers {
  // Separate from the listeners: clients that exhaust their limits cannot block the metrics that show it.
  const admission = createAdmission(
    limits,
    (resource) => metrics.admission(`admin_${resource}`),
    createLocalMemory(),
  )
  const servers: ListeningServer[] = []
  let adminPort = 0

  async function open(address: string, respond: (request: IncomingRequest) => Reply | Promise<Reply>) {
    const { host, port } = parseHostPort(address) ?? { host: '', port: 0 }
    const handler: ConnectionHandler = {
      kind: 'http',
      tls: undefined,
      handle: (request) => ({ reply: Promise.resolve(respond(request)), end() {} }),
    }
    const serve = () => handler
    const server = await openServer({ host, port, clock, limits: defaultServerLimits, admission, serve })
    servers.push(server)
    return server
  }

  return {
    adminPort: () => adminPort,
    async open({ settings, api, pending, render }) {
      const admin = createAdmin({ port: () => adminPort, api })
      const addresses = processAddresses(settings)
      adminPort = (await open(addresses.admin, admin)).port
      await open(addresses.stats, createStats({ render }))
      await open(addresses.readiness, createReadiness(pending))
    },
    close() {
      for (const server of servers) server.close()
    },
  }
}
