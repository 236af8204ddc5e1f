import { listenerAddresses, reachableAddress } from '../../config/listener-addresses.ts'
import type { SourceError } from '../../config/live/live.ts'
import type { Config } from '../../config/schema.ts'
import type { LedgerStatus } from '../../ledger/ledger.ts'
import { formatHostPort } from '../../lib/address/host-port.ts'
import { type Json, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import type { Resources } from '../../resources/resources.ts'
import type { Condition } from '../../telemetry/live/conditions.ts'
import type { PlaneObservation } from '../../telemetry/live/observation.ts'
import type { AdminEndpoint } from '../api.ts'
import { recordCounts } from './counts.ts'
import { findProblems } from './problems.ts'

const path = '/api/state'

/** A process with the same database. */
export type Replica = {
  readonly id: string
  readonly self: boolean
  /** ISO 8601. */
  readonly startedAt?: string
  readonly lastSeen?: string
}

export type StateOptions = {
  readonly version: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  config(): Config | undefined
  errors(): readonly SourceError[]
  needsRestart(): boolean
  readonly resources: Pick<Resources, 'status' | 'effective'>
  ledger(): LedgerStatus | undefined
  observe(): Promise<readonly (PlaneObservation | undefined)[]>
  /** This process first. */
  replicas(): Promise<readonly Replica[]>
}

/** Endpoint of the state of the process: listeners, replicas, number of records, problems. */
export function stateEndpoint(options: StateOptions): AdminEndpoint {
  return {
    path,
    methods: { GET: { respond: async () => ({ kind: 'json', value: await readState(options) }) } },
  }
}

async function readState(options: StateOptions) {
  const { version, startedAt, resources } = options
  const [observations, replicas] = await Promise.all([options.observe(), options.replicas()])
  const present = observations.flatMap((observed) => observed ?? [])
  const config = options.config()
  return {
    version,
    startedAt: new Date(startedAt).toISOString(),
    replicas,
    listeners: config === undefined ? [] : listenersOf(config, present),
    counts: recordCounts(config ?? {}),
    problems: findProblems({
      config,
      file: resources.effective().file,
      errors: options.errors(),
      needsRestart: options.needsRestart(),
      storage: resources.status(),
      ledger: options.ledger(),
      conditions: merged(present),
      silentPlanes: observations.length - present.length,
    }),
  }
}

function listenersOf(config: Config, observations: readonly PlaneObservation[]) {
  return listenerAddresses(config).map(({ hostname, ...listener }) => {
    const { address, port, tls } = listener
    const key = `${address}:${port}`
    const host = hostname === undefined || hostname.includes('*') ? undefined : hostname
    const place = formatHostPort({ host: host ?? clientHost(address), port })
    return {
      ...listener,
      ...(hostname !== undefined && { hostname }),
      url: `${tls ? 'https' : 'http'}://${place}`,
      connections: observations.reduce((sum, { connections }) => sum + (connections[key] ?? 0), 0),
    }
  })
}

/** The host for clients on the same machine; they replace it elsewhere. */
function clientHost(address: string): string {
  const host = reachableAddress(address)
  return host === '127.0.0.1' ? 'localhost' : host
}

/** The conditions of all data planes, each once with its earliest time. */
function merged(observations: readonly PlaneObservation[]): Condition[] {
  const found = new Map<string, Condition>()
  for (const { conditions } of observations) {
    for (const condition of conditions) {
      const key = `${condition.kind} ${condition.subject}`
      const known = found.get(key)
      if (known === undefined || condition.since < known.since) found.set(key, condition)
    }
  }
  return [...found.values()]
}

const text: Json = { type: 'string' }
const time: Json = { type: 'string', format: 'date-time' }
const integer: Json = { type: 'integer' }

export const stateOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      get: {
        summary: 'State of the process: listeners, replicas, number of records by kind, problems.',
        responses: responses({
          type: 'object',
          properties: {
            version: text,
            startedAt: time,
            replicas: {
              type: 'array',
              items: {
                type: 'object',
                properties: { id: text, self: { type: 'boolean' }, startedAt: time, lastSeen: time },
              },
            },
            listeners: {
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  ...{ name: text, gateway: text, address: text, port: integer, protocol: text },
                  ...{ hostname: text, tls: { type: 'boolean' }, connections: integer },
                  url: { type: 'string', description: 'Address for clients on the same machine.' },
                  serves: {
                    type: 'array',
                    items: { type: 'string', enum: ['llm', 'mcp', 'routes', 'tcpRoutes', 'ui'] },
                  },
                },
              },
            },
            counts: { type: 'object', additionalProperties: integer },
            problems: {
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  code: { type: 'string', description: 'Stable.' },
                  severity: { type: 'string', enum: ['error', 'warning'] },
                  ...{ title: text, detail: text, since: time, link: text, doc: text },
                  mistakes: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: { message: text, line: integer, column: integer, path: text },
                    },
                  },
                },
              },
            },
          },
        }),
      },
    },
  },
}
