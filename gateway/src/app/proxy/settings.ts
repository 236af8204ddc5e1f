import type { Environment } from '../../config/load/environment.ts'
import { parseDuration } from '../../lib/duration.ts'

/** Settings of `tollgate proxy`, from environment variables. */
export type ProxySettings = {
  /** `<namespace>/<name>` of the Gateway. */
  readonly gateway: string
  /** Origin of the controller. */
  readonly controllerUrl: string
  /** File with the certificates of the authority of the controller, PEM. */
  readonly controllerCaFile: string
  /** File with the projected service account token. */
  readonly tokenFile: string
  /** Folder of the persisted copy; undefined without one. */
  readonly stateDir: string | undefined
  /** Time between a stop signal and the end of the listeners. */
  readonly drainDelayMs: number
  /** Time for pending requests after the end of the listeners. */
  readonly drainDeadlineMs: number
}

/** Time in which load balancers and kube-proxy learn that the endpoint is withdrawn. */
const defaultDrainDelay = '5s'
const maxDrainDelayMs = 600_000
const defaultDrainDeadline = '25s'

type ReadSettings =
  | { readonly kind: 'settings'; readonly settings: ProxySettings }
  | { readonly kind: 'mistakes'; readonly mistakes: readonly string[] }

/** Reads the settings; mistakes name the variable. */
export function readProxySettings(env: Environment): ReadSettings {
  const gateway = env['GATEWAY'] ?? ''
  const controllerUrl = env['CONTROLLER_URL'] ?? ''
  const controllerCaFile = env['CONTROLLER_CA_FILE'] ?? ''
  const tokenFile = env['TOKEN_FILE'] ?? ''
  const drainDelayMs = parseDuration(env['DRAIN_DELAY'] ?? defaultDrainDelay) ?? -1
  const drainDeadlineMs = parseDuration(env['DRAIN_DEADLINE'] ?? defaultDrainDeadline) ?? -1
  const checks: readonly [boolean, string][] = [
    [/^[^/\s]+\/[^/\s]+$/.test(gateway), 'GATEWAY must be <namespace>/<name>'],
    [isOrigin(controllerUrl), 'CONTROLLER_URL must be an origin such as https://controller.example:15012'],
    [controllerCaFile !== '', 'CONTROLLER_CA_FILE must be the path of a PEM file'],
    [tokenFile !== '', 'TOKEN_FILE must be the path of a service account token'],
    [
      drainDelayMs >= 0 && drainDelayMs <= maxDrainDelayMs,
      'DRAIN_DELAY must be a duration such as 5s, at most 10m',
    ],
    [drainDeadlineMs >= 0, 'DRAIN_DEADLINE must be a duration such as 25s'],
  ]
  const mistakes = checks.flatMap(([isValid, mistake]) => (isValid ? [] : [mistake]))
  if (mistakes.length > 0) return { kind: 'mistakes', mistakes }
  const stateDir = env['STATE_DIR'] === '' ? undefined : env['STATE_DIR']
  return {
    kind: 'settings',
    settings: {
      gateway,
      controllerUrl,
      controllerCaFile,
      tokenFile,
      stateDir,
      drainDelayMs,
      drainDeadlineMs,
    },
  }
}

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, origin, pathname, search, hash, username, password } = new URL(text)
  const isBare = pathname === '/' && search === '' && hash === '' && username === '' && password === ''
  return protocol === 'https:' && origin !== 'null' && isBare
}
