import { createSecureContext } from 'node:tls'
import type { TlsConfig } from '../../../config/traffic/gateway-config.ts'
import { messageOf } from '../../../lib/thrown.ts'
import { ownGroup } from '../../objects/kinds.ts'

type Options = Readonly<Record<string, string>>
type TlsSettings = Pick<TlsConfig, 'minTLSVersion' | 'maxTLSVersion' | 'cipherSuites'>

/** `tls.options` of a listener, or the mistake in them. */
export type TlsOptions =
  | { readonly kind: 'valid'; readonly settings: TlsSettings }
  | { readonly kind: 'invalid'; readonly message: string }

const versions: ReadonlyMap<string, NonNullable<TlsSettings['minTLSVersion']>> = new Map([
  ['1.2', 'TLS_V1_2'],
  ['1.3', 'TLS_V1_3'],
])

const prefix = `${ownGroup}/`

/** Reads the options of this implementation; those of others, by their domain, are ignored. */
export function readTlsOptions(options: Options = {}): TlsOptions {
  const settings: { -readonly [Key in keyof TlsSettings]: TlsSettings[Key] } = {}
  for (const [name, value] of Object.entries(options)) {
    if (!name.startsWith(prefix)) continue
    switch (name.slice(prefix.length)) {
      case 'min-tls-version':
      case 'max-tls-version': {
        const version = versions.get(value)
        if (version === undefined) return invalid(`tls.options["${name}"] must be 1.2 or 1.3, got "${value}"`)
        settings[name === `${prefix}min-tls-version` ? 'minTLSVersion' : 'maxTLSVersion'] = version
        break
      }
      case 'cipher-suites':
        settings.cipherSuites = value.split(',').map((suite) => suite.trim())
        break
      default:
        return invalid(
          `tls.options["${name}"] is not supported: options are min-tls-version, max-tls-version and cipher-suites`,
        )
    }
  }
  const mistake = combinedMistake(settings)
  return mistake === undefined ? { kind: 'valid', settings } : invalid(mistake)
}

function combinedMistake({ minTLSVersion, maxTLSVersion, cipherSuites }: TlsSettings): string | undefined {
  if (minTLSVersion === 'TLS_V1_3' && maxTLSVersion === 'TLS_V1_2') {
    return `tls.options["${prefix}max-tls-version"] must not be older than min-tls-version`
  }
  if (cipherSuites === undefined) return undefined
  try {
    createSecureContext({ ciphers: cipherSuites.join(':') })
    return undefined
  } catch (error) {
    return `tls.options["${prefix}cipher-suites"] must list supported cipher suites: ${messageOf(error)}`
  }
}

function invalid(message: string): TlsOptions {
  return { kind: 'invalid', message }
}
