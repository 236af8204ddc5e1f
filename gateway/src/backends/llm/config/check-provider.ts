import { nearest } from '../../../lib/nearest.ts'
import { presentKeys } from '../../../schema/dsl.ts'
import type { Path } from '../../../schema/path.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { customKind } from '../providers/custom.ts'
import type { ProviderKind } from '../providers/provider.ts'
import { findProviderKind, providerKinds } from '../providers/providers.ts'
import { checkSettings, settingsFrom } from '../providers/settings.ts'
import { checkParams } from './check-settings.ts'
import type { LlmParams, ProviderConfig } from './config.ts'

/** Reports issues of a provider and its `params`. `path` is the place of the model or shared provider. */
export function checkProvider(
  choice: ProviderConfig['provider'],
  params: LlmParams | undefined,
  path: Path,
  report: ReportIssue,
): void {
  const kind = typeof choice === 'object' ? customKind : findProviderKind(choice)
  if (!kind) {
    report([...path, 'provider'], unknownProvider(String(choice)))
    return
  }
  const ofParams = kind.params ?? {}
  const settings = typeof choice === 'object' ? choice.custom : settingsFrom(kind, params ?? {})
  const isComplete = checkSettings(kind, settings, (field, message) => {
    const place =
      typeof choice === 'object' ? ['provider', 'custom', field] : ['params', ofParams[field] ?? field]
    report([...path, ...place], message)
  })
  if (params !== undefined) checkForeignParams(params, kind, [...path, 'params'], report)
  if (isComplete) checkParams(params, kind.configure(settings), path, report)
}

function unknownProvider(name: string): string {
  const names = providerKinds.map((kind) => kind.name)
  const near = nearest(name, names)
  const hint = near
    ? `did you mean "${near}"?`
    : `expected one of ${names.join(', ')}; use custom for other servers with OpenAI's API`
  return `unknown provider "${name}", ${hint}`
}

/** Reports settings of other kinds. */
function checkForeignParams(params: LlmParams, own: ProviderKind, path: Path, report: ReportIssue): void {
  for (const { name, params: keys = {} } of providerKinds) {
    if (name === own.name) continue
    for (const key of presentKeys(params, Object.values(keys)))
      report([...path, key], `is only valid with provider "${name}"`)
  }
}
