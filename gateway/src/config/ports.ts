import { parseHostPort } from '../lib/address/host-port.ts'
import type { ReportIssue } from '../schema/report.ts'
import { defaultGateway } from './traffic/attachments.ts'
import type { TrafficSections } from './traffic/sections.ts'

const defaultLlmPort = 4000
const defaultMcpPort = 3000

type Section = { port?: number | undefined; gateways?: unknown }

export type Addressed = {
  gateways?: Readonly<Record<string, unknown>> | undefined
  llm?: (Section & { tls?: unknown }) | undefined
  mcp?: Section | undefined
}

/** The port of a section without gateways; undefined if the section is absent or attached to gateways. */
export function portsOf({ gateways = {}, llm, mcp }: Addressed) {
  const shares = Object.hasOwn(gateways, defaultGateway)
  const portOf = (section: Section | undefined, usual: number) => {
    if (section === undefined || section.gateways !== undefined) return undefined
    return section.port ?? (shares ? undefined : usual)
  }
  return { llm: portOf(llm, defaultLlmPort), mcp: portOf(mcp, defaultMcpPort) }
}

type ProcessAddresses = {
  adminAddr?: string | undefined
  statsAddr?: string | undefined
  readinessAddr?: string | undefined
}

/** Addresses of the process itself, as `host:port`: admin API, metrics, readiness. */
export function processAddresses({ adminAddr, statsAddr, readinessAddr }: ProcessAddresses) {
  return {
    admin: adminAddr ?? '127.0.0.1:15000',
    stats: statsAddr ?? '[::]:15020',
    readiness: readinessAddr ?? '[::]:15021',
  }
}

/** Ports of this process: listeners, admin API, metrics, readiness. */
export function occupiedPorts(
  config: Addressed & { config?: ProcessAddresses | undefined },
  { gateways }: Pick<TrafficSections, 'gateways'>,
): ReadonlySet<number> {
  const { llm, mcp } = portsOf({ ...config, gateways })
  const addresses = Object.values(processAddresses(config.config ?? {}))
  return new Set([
    ...Object.values(gateways).map(({ port }) => port),
    ...[llm, mcp].flatMap((port) => port ?? []),
    ...addresses.flatMap((text) => parseHostPort(text)?.port ?? []),
  ])
}

/** Reports ports with several owners. */
export function checkPorts(
  config: Addressed,
  { gateways, written }: TrafficSections,
  report: ReportIssue,
): void {
  const { llm, mcp } = portsOf({ ...config, gateways })
  const users = [
    ...Object.entries(gateways).map(([name, { port }]) => ({ name, port, path: ['gateways', name, 'port'] })),
    { name: 'llm', port: llm, path: ['llm'] },
    { name: 'mcp', port: mcp, path: ['mcp'] },
  ]
  const owners = new Map<number, string>()
  for (const { name, port, path } of users) {
    if (port === undefined || port === 0) continue
    const owner = owners.get(port)
    if (owner === undefined) owners.set(port, name)
    else report(written(path), `port ${port} is configured by both ${owner} and ${name}`)
  }
}
