import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { type HostPort, parseHostPort } from '../../lib/address/host-port.ts'
import type { LogLevel } from '../../telemetry/log.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Options of `tollgate controller`: a flag, else an environment variable, else the default. */
export type ControllerSettings = {
  /** Kubeconfig file; undefined for the service account of the Pod. */
  readonly kubeconfig: string | undefined
  /** Namespace of the lease; undefined for that of the credentials. */
  readonly namespace: string | undefined
  /** Namespaces to watch; undefined for all. */
  readonly watchNamespaces: readonly string[] | undefined
  /** Address of the configuration stream. */
  readonly listen: HostPort
  readonly stats: HostPort
  readonly readiness: HostPort
  readonly logLevel: LogLevel
  /** URL of the stream for proxies; undefined for the Service of the controller. */
  readonly controllerUrl: string | undefined
  /** Image of proxies without `image` in their parameters. */
  readonly proxyImage: string | undefined
  /** Name of this replica in the lease. */
  readonly identity: string
}

/** Flags with their variables and defaults. */
const options = {
  kubeconfig: { variable: 'KUBECONFIG', fallback: undefined },
  namespace: { variable: 'POD_NAMESPACE', fallback: undefined },
  'watch-namespaces': { variable: 'WATCH_NAMESPACES', fallback: undefined },
  listen: { variable: 'CONTROLLER_ADDR', fallback: '[::]:15012' },
  stats: { variable: 'STATS_ADDR', fallback: '[::]:15020' },
  readiness: { variable: 'READINESS_ADDR', fallback: '[::]:15021' },
  'log-level': { variable: 'LOG_LEVEL', fallback: 'info' },
  'controller-url': { variable: 'CONTROLLER_URL', fallback: undefined },
  'proxy-image': { variable: 'PROXY_IMAGE', fallback: undefined },
  identity: { variable: 'POD_NAME', fallback: undefined },
} as const

type OptionName = keyof typeof options

const logLevels: readonly string[] = ['debug', 'info', 'warn', 'error'] satisfies LogLevel[]
const namespacePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** Reads the options. Throws an error that names the option and the fix. */
export function readControllerSettings(argv: string[], env: Environment): ControllerSettings {
  const names = Object.keys(options) as OptionName[]
  const { values } = parseArgs({
    args: argv,
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  })
  const read = (name: OptionName): string | undefined => {
    const flag = values[name]
    const text = typeof flag === 'string' ? flag : env[options[name].variable]
    return text === undefined || text === '' ? options[name].fallback : text
  }
  const namespaces = read('watch-namespaces')
  return {
    kubeconfig: read('kubeconfig'),
    namespace: namespaceOf('namespace', read('namespace')),
    watchNamespaces: namespaces === undefined ? undefined : namespacesOf(namespaces),
    listen: addressOf('listen', read('listen')),
    stats: addressOf('stats', read('stats')),
    readiness: addressOf('readiness', read('readiness')),
    logLevel: logLevelOf(read('log-level')),
    controllerUrl: urlOf('controller-url', read('controller-url')),
    proxyImage: read('proxy-image'),
    // Names of Pods are unique; a host may run several controllers.
    identity: read('identity') ?? `${hostname()}_${randomBytes(4).toString('hex')}`,
  }
}

function describe(name: OptionName): string {
  return `--${name} (${options[name].variable})`
}

function addressOf(name: OptionName, text: string | undefined): HostPort {
  const address = text === undefined ? undefined : parseHostPort(text)
  if (address === undefined) throw new Error(`${describe(name)} must be HOST:PORT`)
  return address
}

function urlOf(name: OptionName, text: string | undefined): string | undefined {
  if (text !== undefined && URL.parse(text)?.protocol !== 'https:')
    throw new Error(`${describe(name)} must be an https URL`)
  return text
}

function namespaceOf(name: OptionName, text: string | undefined): string | undefined {
  if (text !== undefined && !namespacePattern.test(text))
    throw new Error(`${describe(name)} must be the name of a namespace`)
  return text
}

function namespacesOf(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  for (const name of names) namespaceOf('watch-namespaces', name)
  return [...new Set(names)]
}

function logLevelOf(text: string | undefined): LogLevel {
  if (text === undefined || !logLevels.includes(text))
    throw new Error(`${describe('log-level')} must be one of ${logLevels.join(', ')}`)
  return text as LogLevel
}
