import { createReadiness, createStats } from '../../admin/probes.ts'
import { openServer } from '../../data-plane/open-server.ts'
import type { HostPort } from '../../lib/address/host-port.ts'
import type { Clock } from '../../lib/clock.ts'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import { defaultServerLimits, type IncomingRequest } from '../../net/http/incoming-request.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { createAdmission, defaultAdmissionLimits } from '../../net/listener/admission.ts'
import { renderMetrics } from '../../telemetry/exposition/exposition.ts'
import type { MetricRegistry } from '../../telemetry/metrics/families.ts'
import { createAdmissionMeters } from '../../telemetry/metrics/limits.ts'

export type ControllerServerOptions = {
  readonly clock: Clock
  readonly registry: MetricRegistry
  readonly stats: HostPort
  readonly readiness: HostPort
  /** Parts of the controller that are not ready. */
  pending(): readonly string[]
}

const limits = { ...defaultAdmissionLimits, maxConnections: 1_000, maxConnectionsPerClient: 500 }

/** Opens the metrics and readiness addresses of a controller. Rejects if one of them cannot be opened. */
export async function openControllerServers(options: ControllerServerOptions): Promise<{ close(): void }> {
  const { clock, registry } = options
  const meters = createAdmissionMeters(registry)
  const admission = createAdmission(
    limits,
    (resource) => meters.meterOf(`admin_${resource}`),
    createLocalMemory(),
  )

  function open({ host, port }: HostPort, respond: (request: IncomingRequest) => Reply | Promise<Reply>) {
    const handler = {
      kind: 'http' as const,
      tls: undefined,
      handle: (request: IncomingRequest) => ({ reply: Promise.resolve(respond(request)), end() {} }),
    }
    return openServer({ host, port, clock, limits: defaultServerLimits, admission, serve: () => handler })
  }

  const readiness = await open(options.readiness, createReadiness(options.pending))
  try {
    const stats = await open(
      options.stats,
      createStats({ render: (accept) => renderMetrics(registry, accept) }),
    )
    return {
      close() {
        readiness.close()
        stats.close()
      },
    }
  } catch (error) {
    readiness.close()
    throw error
  }
}
