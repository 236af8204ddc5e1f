import type { LlmParams, ModelConfig, ProviderConfig } from '../config/config.ts'
import { customKind } from '../providers/custom.ts'
import type { Provider, ProviderKind } from '../providers/provider.ts'
import { findProviderKind } from '../providers/providers.ts'
import { settingsFrom } from '../providers/settings.ts'

/** Name of a provider kind, or the settings of `custom`. */
export type ProviderChoice = ProviderConfig['provider']

/** The provider of a model, which may be that of its shared settings. */
export function chosenProvider(
  { provider }: ModelConfig,
  shared: ProviderConfig | undefined,
): ProviderChoice | undefined {
  if (typeof provider === 'string') return provider
  if (provider.custom !== undefined) return { custom: provider.custom }
  if (typeof shared?.provider !== 'object') return shared?.provider
  const { custom } = shared.provider
  return { custom: { ...custom, providerOverride: custom.providerOverride ?? shared.name } }
}

/** Creates the provider from valid settings; undefined if the kind is unknown. */
export function compileProvider(choice: ProviderChoice, params: LlmParams): Provider | undefined {
  if (typeof choice === 'object') return customKind.configure(choice.custom)
  const kind = findProviderKind(choice)
  return kind?.configure(settingsFrom(kind, params))
}

/** Authentication without a configured credential. */
export function ambientAuthOf(choice: ProviderChoice): ProviderKind['ambientAuth'] {
  return typeof choice === 'object' ? undefined : findProviderKind(choice)?.ambientAuth
}
