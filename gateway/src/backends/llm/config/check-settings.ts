import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { checkBackendPolicies } from '../../../upstream/check.ts'
import { isCredential } from '../../../upstream/credentials/credential.ts'
import { checkFinalTransformation, checkModelTransformation } from '../models/transformation.ts'
import type { Provider } from '../providers/provider.ts'
import { isPointer, parsePointer } from '../rewrite/field-pointers.ts'
import { checkOverrides } from './check-overrides.ts'
import type { LlmParams } from './config.ts'
import { type ModelSettings, routingRoots } from './model-settings.ts'

const roots: ReadonlySet<string> = new Set(routingRoots)

/** Reports issues of settings of a model or a provider. `path` is their place, for both kinds. */
export function checkModelSettings(settings: ModelSettings, path: Path, report: ReportIssue): void {
  const { transformation, finalTransformation, auth, requestHeaders, responseHeaders, tls, backendTLS } =
    settings
  const { backendTunnel } = settings
  const names = new Map([
    ['backendAuth', 'auth'],
    ['requestHeaderModifier', 'requestHeaders'],
    ['responseHeaderModifier', 'responseHeaders'],
    ['backendTLS', tls === undefined ? 'backendTLS' : 'tls'],
  ])
  const policies = {
    backendAuth: auth,
    requestHeaderModifier: requestHeaders,
    responseHeaderModifier: responseHeaders,
    backendTLS: tls ?? backendTLS,
    backendTunnel,
  }
  checkBackendPolicies(policies, ([key, ...rest], message) =>
    report([...path, names.get(String(key)) ?? String(key), ...rest], message),
  )
  if (tls !== undefined && backendTLS !== undefined)
    report([...path, 'backendTLS'], 'is another name of tls: remove one of them')
  checkBodyFields({ ...settings, path }, report)
  if (transformation !== undefined)
    checkModelTransformation(transformation, roots, (at, message) =>
      report([...path, 'transformation', ...at], message),
    )
  if (finalTransformation !== undefined)
    checkFinalTransformation(finalTransformation, roots, (at, message) =>
      report([...path, 'finalTransformation', ...at], message),
    )
}

/** Fields by name or path, at a place of the configuration. */
export type BodyFieldsAt = {
  readonly defaults?: Readonly<Record<string, unknown>> | undefined
  readonly overrides?: Readonly<Record<string, unknown>> | undefined
  readonly path: Path
}

/** Reports invalid paths of `defaults` and `overrides`, and a model that is not a name. */
export function checkBodyFields({ path, ...fields }: BodyFieldsAt, report: ReportIssue): void {
  const model = fields.overrides?.['model']
  if (model !== undefined && (typeof model !== 'string' || model === ''))
    report([...path, 'overrides', 'model'], 'must be the name of a model')
  for (const key of ['defaults', 'overrides'] as const) {
    for (const name of Object.keys(fields[key] ?? {})) {
      if (!isPointer(name)) continue
      const pointer = parsePointer(name)
      if (pointer === undefined || pointer.includes('__proto__'))
        report([...path, key, name], 'must be a JSON Pointer to a field, such as /metadata/team')
    }
  }
}

/** Reports issues of `params` for a provider. `path` is the place of the model or provider. */
export function checkParams(
  params: LlmParams | undefined,
  provider: Provider,
  path: Path,
  report: ReportIssue,
): void {
  const at = [...path, 'params']
  if (typeof params?.apiKey === 'string' && !isCredential(params.apiKey)) {
    report([...at, 'apiKey'], 'must be printable ASCII without spaces, and must not be empty')
  }
  if (params !== undefined)
    checkOverrides(params, provider, (rest, message) => report([...at, ...rest], message))
  const { baseUrl, hostOverride } = params ?? {}
  if (baseUrl !== undefined) checkBaseUrl(baseUrl, [...at, 'baseUrl'], report)
  else if (provider.address === undefined && !provider.local && hostOverride === undefined) {
    report([...path, 'provider'], `provider "${provider.name}" requires params.baseUrl`)
  }
  if (baseUrl === undefined) return
  for (const key of ['hostOverride', 'pathPrefix'] as const) {
    if (params?.[key] !== undefined)
      report([...at, key], 'is not valid with baseUrl: write the address in baseUrl')
  }
}

function checkBaseUrl(text: string, path: Path, report: ReportIssue): void {
  const address = URL.parse(text)
  // The schema reports invalid URLs.
  if (!address) return
  if (address.username !== '' || address.password !== '')
    report(path, 'must not contain a credential: use params.apiKey')
  if (address.search !== '' || address.hash !== '') report(path, 'must not contain a query or a fragment')
}
