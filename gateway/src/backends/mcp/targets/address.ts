import { formatHostPort, type HostPort, parseHostPort } from '../../../lib/address/host-port.ts'
import { name, optional, port, string } from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'

/** The two ways to say where a target is. */
export const addressVariants = {
  host: name({
    doc: 'Address of the server: a whole URL, `host:port`, or a host beside `port` and `path`.',
    example: 'http://localhost:8080/mcp',
  }),
  backend: name({ doc: 'The named backend it is at, as `/<name>`.', example: '/tools' }),
}

/** What goes with either. */
export const addressFields = {
  port: optional(port({ doc: 'Port, where `host` is a bare host.' })),
  path: optional(string({ doc: 'Path of the endpoint, where `host` does not name it.', example: '/mcp' })),
}

export type AddressConfig = {
  host?: string | undefined
  backend?: string | undefined
  port?: number | undefined
  path?: string | undefined
}

/** What policies and named backends say of a target's address. */
export type AddressContext = {
  /** The named backend, where one is named. */
  readonly destination?: { readonly origin: string } | undefined
  /** Whether the target is reached over TLS, though its address need not say so. */
  readonly secure?: boolean | undefined
}

export type TargetAddress = {
  /** Scheme, host and port. */
  origin: string
  /** Starts with a slash; may have a query. */
  path: string
}

/** Takes an address apart, or says what is wrong with it. */
export function readAddress(
  config: AddressConfig,
  defaultPath: string,
  { destination, secure = false }: AddressContext = {},
): TargetAddress | { mistake: string } {
  const { host, backend } = config
  const pathMistake = mistakeInPath(config.path)
  if (pathMistake !== undefined) return { mistake: pathMistake }
  if (host === undefined) {
    if (config.port !== undefined) return { mistake: 'a named backend has a port of its own' }
    if (destination === undefined) return { mistake: `there is no backend ${backend ?? ''} to call` }
    return { origin: destination.origin, path: config.path || defaultPath }
  }
  if (!host.includes('://')) return bareAddress({ ...config, host }, defaultPath, secure ? 'https' : 'http')
  const url = URL.parse(host)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return { mistake: `host must be an http or https URL, or a host, got "${host}"` }
  }
  if (url.username !== '' || url.password !== '') return { mistake: 'host must not hold credentials' }
  if (url.hash !== '') return { mistake: 'host must not hold a fragment' }
  if (secure) url.protocol = 'https:'
  if (config.port !== undefined) url.port = String(config.port)
  const own = `${url.pathname === '/' ? '' : url.pathname}${url.search}`
  return { origin: url.origin, path: config.path || (own.startsWith('/') ? own : `${defaultPath}${own}`) }
}

function bareAddress(
  { host, port, path }: AddressConfig & { host: string },
  defaultPath: string,
  scheme: 'http' | 'https',
): TargetAddress | { mistake: string } {
  const withPort = parseHostPort(host)
  if (withPort) {
    if (port !== undefined) return { mistake: 'the port is given twice, in host and in port' }
    return { origin: originOf(scheme, withPort), path: path || defaultPath }
  }
  if (port === undefined)
    return { mistake: `host must be a URL or host:port, or port must be set, got "${host}"` }
  const bare = parseHostPort(`${host.includes(':') ? `[${host}]` : host}:${port}`)
  if (!bare) return { mistake: `host must be a name or an address, got "${host}"` }
  return { origin: originOf(scheme, bare), path: path || defaultPath }
}

function originOf(scheme: 'http' | 'https', address: HostPort): string {
  return `${scheme}://${formatHostPort(address)}`
}

function mistakeInPath(path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined
  if (!/^\/[\x21-\x7e]*$/.test(path) || path.includes('#')) {
    return `path must start with a slash and hold no blanks, got "${path}"`
  }
  return undefined
}

/** What a schema cannot see in an address, told with the key it is about. Which backends there are is checked with all names at hand. */
export function checkAddress(config: AddressConfig, defaultPath: string, report: ReportIssue): void {
  const { backend } = config
  if (backend !== undefined && !/^\/[^/]/.test(backend)) {
    report(['backend'], `a named backend is written with a slash before its name, got "${backend}"`)
    return
  }
  const address = readAddress(config, defaultPath, backend === undefined ? {} : anywhere)
  if ('mistake' in address) report([backend === undefined ? 'host' : 'backend'], address.mistake)
}

const anywhere: AddressContext = { destination: { origin: 'http://backend' } }
