import type { ProviderKind, ProviderSettings, ReportSetting } from './provider.ts'

/** The settings of a kind from the keys of `llm.models[].params`. */
export function settingsFrom({ params = {} }: ProviderKind, given: object): ProviderSettings {
  const values: Readonly<Record<string, unknown>> = { ...given }
  const settings: Record<string, unknown> = {}
  for (const [setting, key] of Object.entries(params)) {
    if (values[key] !== undefined) settings[setting] = values[key]
  }
  return settings
}

/** Reports missing and invalid settings. Returns whether the kind can be configured. */
export function checkSettings(
  { name, required = [], check }: ProviderKind,
  settings: ProviderSettings,
  report: ReportSetting,
): boolean {
  const missing = required.filter((field) => settings[field] === undefined)
  for (const field of missing) report(field, `must be set for provider "${name}"`)
  if (missing.length > 0) return false
  check?.(settings, report)
  return true
}
