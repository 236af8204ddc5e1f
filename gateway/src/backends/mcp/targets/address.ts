import { formatHostPort, type HostPort, parseHostPort } from '../../../lib/address/host-port.ts'
import { name, optional, port, string } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** Address variants of a target. */
export const addressVariants = {
  host: name({
    doc: 'Address of the server: a URL, `host:port`, or a host with `port` and `path`.',
    example: 'http://localhost:8080/mcp',
  }),
  backend: name({ doc: 'Named backend of the server, as `/<name>`.', example: '/tools' }),
}

/** Fields for both variants. */
export const addressFields = {
  port: optional(port({ doc: 'Port, if `host` is a host without port.' })),
  path: optional(string({ doc: 'Path of the endpoint, if `host` has none.', example: '/mcp' })),
}

export type AddressConfig = {
  host?: string | undefined
  backend?: string | undefined
  port?: number | undefined
  path?: string | undefined
}

/** Address properties from policies and named backends. */
export type AddressContext = {
  /** Named backend, if referenced. */
  readonly destination?: { readonly origin: string } | undefined
  /** Whether the connection uses TLS regardless of the address. */
  readonly secure?: boolean | undefined
}

export type TargetAddress = {
  /** Scheme, host and port. */
  origin: string
  /** Starts with a slash; may have a query. */
  path: string
}

/** Result of the parser of addresses. */
export type AddressReading =
  | { readonly kind: 'address'; readonly address: TargetAddress }
  | { readonly kind: 'invalid'; readonly problem: string }

/** Parses the address of a target; throws if it is invalid. */
export function compileAddress(
  targetName: string,
  config: AddressConfig,
  defaultPath: string,
  context: AddressContext,
): TargetAddress {
  const reading = readAddress(config, defaultPath, context)
  if (reading.kind === 'invalid') throw new Error(`mcp.targets "${targetName}": ${reading.problem}`)
  return reading.address
}

/** Parses an address. */
export function readAddress(
  config: AddressConfig,
  defaultPath: string,
  { destination, secure = false }: AddressContext = {},
): AddressReading {
  const { host, backend } = config
  const pathProblem = problemOfPath(config.path)
  if (pathProblem !== undefined) return invalid(pathProblem)
  if (host === undefined) {
    if (config.port !== undefined)
      return invalid('port is not valid with a named backend: set the port of the backend')
    if (destination === undefined) return invalid(`backend ${backend ?? ''} does not exist`)
    return valid(destination.origin, config.path || defaultPath)
  }
  if (!host.includes('://')) return bareAddress({ ...config, host }, defaultPath, secure ? 'https' : 'http')
  const url = URL.parse(host)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return invalid(`host must be an http or https URL, or a host, got "${host}"`)
  }
  if (url.username !== '' || url.password !== '') return invalid('host must not contain credentials')
  if (url.hash !== '') return invalid('host must not contain a fragment')
  if (secure) url.protocol = 'https:'
  if (config.port !== undefined) url.port = String(config.port)
  const own = `${url.pathname === '/' ? '' : url.pathname}${url.search}`
  return valid(url.origin, config.path || (own.startsWith('/') ? own : `${defaultPath}${own}`))
}

function bareAddress(
  { host, port, path }: AddressConfig & { host: string },
  defaultPath: string,
  scheme: 'http' | 'https',
): AddressReading {
  const withPort = parseHostPort(host)
  if (withPort) {
    if (port !== undefined) return invalid('port must be set once: host already has a port')
    return valid(originOf(scheme, withPort), path || defaultPath)
  }
  if (port === undefined)
    return invalid(`host must be a URL or host:port, or port must be set, got "${host}"`)
  const bare = parseHostPort(`${host.includes(':') ? `[${host}]` : host}:${port}`)
  if (!bare) return invalid(`host must be a name or an address, got "${host}"`)
  return valid(originOf(scheme, bare), path || defaultPath)
}

function valid(origin: string, path: string): AddressReading {
  return { kind: 'address', address: { origin, path } }
}

function invalid(problem: string): AddressReading {
  return { kind: 'invalid', problem }
}

function originOf(scheme: 'http' | 'https', address: HostPort): string {
  return `${scheme}://${formatHostPort(address)}`
}

function problemOfPath(path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined
  if (!/^\/[\x21-\x7e]*$/.test(path) || path.includes('#')) {
    return `path must start with a slash and must not contain blanks, got "${path}"`
  }
  return undefined
}

/**
 * Reports problems of an address that its schema cannot express, with the key. The existence of a named
 * backend is checked with all names.
 */
export function checkAddress(config: AddressConfig, defaultPath: string, report: ReportIssue): void {
  const { backend } = config
  if (backend !== undefined && !/^\/[^/]/.test(backend)) {
    report(['backend'], `backend must have the form /<name>, got "${backend}"`)
    return
  }
  const reading = readAddress(config, defaultPath, backend === undefined ? {} : anywhere)
  if (reading.kind === 'invalid') report([backend === undefined ? 'host' : 'backend'], reading.problem)
}

const anywhere: AddressContext = { destination: { origin: 'http://backend' } }
