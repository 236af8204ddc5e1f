import type { LlmConfig, ModelConfig, ProviderConfig } from '../config/config.ts'
import type { ModelSettings } from '../config/model-settings.ts'

/** The entry of `llm.providers` that a model references. */
export function sharedProvider(
  { provider }: ModelConfig,
  { providers = [] }: LlmConfig,
): ProviderConfig | undefined {
  if (typeof provider === 'string' || provider.reference === undefined) return undefined
  const { reference } = provider
  return providers.find(({ name }) => name === reference)
}

/**
 * Settings of a model with those of its shared provider: body fields are merged, and for other settings the
 * model takes precedence.
 */
export function settingsOf(model: ModelConfig, shared: ProviderConfig | undefined): ModelSettings {
  const common = shared?.defaults
  if (common === undefined) return model
  return {
    defaults: { ...common.defaults, ...model.defaults },
    overrides: { ...common.overrides, ...model.overrides },
    transformation: merged(common.transformation, model.transformation),
    finalTransformation: merged(common.finalTransformation, model.finalTransformation),
    prompts: model.prompts ?? common.prompts,
    promptCaching: model.promptCaching ?? common.promptCaching,
    auth: model.auth ?? common.auth,
    requestHeaders: model.requestHeaders ?? common.requestHeaders,
    responseHeaders: model.responseHeaders ?? common.responseHeaders,
    tls: tlsOf(model) ?? tlsOf(common),
    backendTunnel: model.backendTunnel ?? common.backendTunnel,
    health: model.health ?? common.health,
  }
}

/** TLS settings under either name. */
export function tlsOf({ tls, backendTLS }: ModelSettings): ModelSettings['tls'] {
  return tls ?? backendTLS
}

/** Undefined if both are: the absence of a transformation costs nothing per request. */
function merged(
  common: Readonly<Record<string, string>> | undefined,
  own: Readonly<Record<string, string>> | undefined,
): Record<string, string> | undefined {
  return common === undefined && own === undefined ? undefined : { ...common, ...own }
}
