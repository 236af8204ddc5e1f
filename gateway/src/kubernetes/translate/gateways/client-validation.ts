import type { FrontendValidation, Gateway, GatewayListener } from '../../objects/gateway-api.ts'
import type { CertificateSource, Resolution } from './certificates.ts'

/** Validation of client certificates on a listener. */
export type ClientValidation = {
  /** PEM of the valid authorities; undefined if clients need no certificate. */
  readonly root: string | undefined
  readonly failures: readonly Failed[]
  /** Whether there are references and none is valid: the listener is refused. */
  readonly isUnusable: boolean
  /** The mistake in a field; undefined if there is none. */
  readonly mistake: string | undefined
}

type Failed = Extract<Resolution<string>, { kind: 'failed' }>

const noValidation: ClientValidation = {
  root: undefined,
  failures: [],
  isUnusable: false,
  mistake: undefined,
}

const insecureFallback = 'AllowInsecureFallback'

/** `spec.tls.frontend` for a listener. It applies to HTTPS; an entry of the port replaces the default. */
function validationOf(
  { spec }: Gateway,
  { port, protocol }: GatewayListener,
): FrontendValidation | undefined {
  if (protocol !== 'HTTPS') return undefined
  const frontend = spec.tls?.frontend
  const own = frontend?.perPort?.find((entry) => entry.port === port)
  return own === undefined ? frontend?.default?.validation : own.tls.validation
}

/** Resolves the authorities of client certificates of a listener. */
export function readClientValidation(
  gateway: Gateway,
  listener: GatewayListener,
  certificates: CertificateSource,
): ClientValidation {
  const validation = validationOf(gateway, listener)
  if (validation === undefined) return noValidation
  const { caCertificateRefs = [], mode = 'AllowValidOnly' } = validation
  const { namespace = '' } = gateway.metadata
  const resolved = caCertificateRefs.map((reference) => certificates.authorities(reference, namespace))
  const failures = resolved.filter((resolution) => resolution.kind === 'failed')
  const bundles = resolved.filter((resolution) => resolution.kind === 'resolved')
  const root = bundles.map(({ value }) => value).join('\n')
  return {
    root: mode === insecureFallback || root === '' ? undefined : root,
    failures,
    isUnusable: bundles.length === 0,
    mistake: modeMistake(mode),
  }
}

function modeMistake(mode: string): string | undefined {
  if (mode === 'AllowValidOnly' || mode === insecureFallback) return undefined
  return `tls.frontend validation.mode must be AllowValidOnly or ${insecureFallback}, got "${mode}"`
}

/** Whether client certificates are optional somewhere on a Gateway. */
export function allowsInsecureFallback({ spec: { tls } }: Gateway): boolean {
  const { default: byDefault, perPort = [] } = tls?.frontend ?? {}
  const validations = [byDefault?.validation, ...perPort.map((entry) => entry.tls.validation)]
  return validations.some((validation) => validation?.mode === insecureFallback)
}
