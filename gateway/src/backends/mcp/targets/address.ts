import { formatHostPort, parseHostPort } from '../../../lib/host-port.ts'
import { name, optional, port, string } from '../../../schema/dsl.ts'

/** Fields that say where a target listens. */
export const addressFields = {
  host: name({
    doc: 'Address of the server: a whole URL, `host:port`, or a host beside `port` and `path`.',
    example: 'http://localhost:8080/mcp',
  }),
  port: optional(port({ doc: 'Port, where `host` is a bare host.' })),
  path: optional(string({ doc: 'Path of the endpoint, where `host` does not name it.', example: '/mcp' })),
}

export type AddressConfig = { host: string; port?: number | undefined; path?: string | undefined }

export type TargetAddress = {
  /** Scheme, host and port. */
  origin: string
  /** Starts with a slash; may have a query. */
  path: string
}

/** Takes an address apart, or says what is wrong with it. */
export function readAddress(config: AddressConfig, defaultPath: string): TargetAddress | { mistake: string } {
  const { host } = config
  const pathMistake = mistakeInPath(config.path)
  if (pathMistake !== undefined) return { mistake: pathMistake }
  if (!host.includes('://')) return bareAddress(config, defaultPath)
  const url = URL.parse(host)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return { mistake: `host must be an http or https URL, or a host, got "${host}"` }
  }
  if (url.username !== '' || url.password !== '') return { mistake: 'host must not hold credentials' }
  if (url.hash !== '') return { mistake: 'host must not hold a fragment' }
  if (config.port !== undefined) url.port = String(config.port)
  const own = `${url.pathname === '/' ? '' : url.pathname}${url.search}`
  return { origin: url.origin, path: config.path || (own.startsWith('/') ? own : `${defaultPath}${own}`) }
}

function bareAddress(
  { host, port, path }: AddressConfig,
  defaultPath: string,
): TargetAddress | { mistake: string } {
  const withPort = parseHostPort(host)
  if (withPort) {
    if (port !== undefined) return { mistake: 'the port is given twice, in host and in port' }
    return { origin: `http://${formatHostPort(withPort)}`, path: path || defaultPath }
  }
  if (port === undefined)
    return { mistake: `host must be a URL or host:port, or port must be set, got "${host}"` }
  const bare = parseHostPort(`${host.includes(':') ? `[${host}]` : host}:${port}`)
  if (!bare) return { mistake: `host must be a name or an address, got "${host}"` }
  return { origin: `http://${formatHostPort(bare)}`, path: path || defaultPath }
}

function mistakeInPath(path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined
  if (!/^\/[\x21-\x7e]*$/.test(path) || path.includes('#')) {
    return `path must start with a slash and hold no blanks, got "${path}"`
  }
  return undefined
}
