import { parseHostPort } from '../../../lib/address/host-port.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import type { Provider } from '../providers/provider.ts'

/** An address in parts. */
export type AddressOverrides = {
  readonly hostOverride?: string | undefined
  readonly pathOverride?: string | undefined
  readonly pathPrefix?: string | undefined
}

const overrideKeys = ['hostOverride', 'pathOverride', 'pathPrefix'] as const

/** Reports issues of an address in parts. */
export function checkOverrides(
  overrides: AddressOverrides,
  provider: Provider | undefined,
  report: ReportIssue,
): void {
  const { hostOverride, pathOverride, pathPrefix } = overrides
  if (hostOverride !== undefined && parseHostPort(hostOverride)?.port === 0) {
    report(['hostOverride'], 'port must not be 0')
  }
  for (const key of overrideKeys) {
    const text = overrides[key]
    if (text === undefined) continue
    if (provider?.local)
      report(
        [key],
        `is not valid with provider "${provider.name}": it runs inside the gateway and has no address`,
      )
    if (key !== 'hostOverride' && !/^\/[\x21-\x7e]*$/.test(text)) {
      report([key], `must start with a slash and contain no spaces, got "${text}"`)
    } else if (key !== 'hostOverride' && /[?#]/.test(text)) {
      report([key], 'must not contain a query or a fragment')
    }
  }
  if (pathOverride !== undefined && pathPrefix !== undefined) {
    report(['pathPrefix'], 'is not valid with pathOverride: remove one of them')
  }
}
