import { messageOf } from '../../../lib/thrown.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Send, UpstreamConnection } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { SecretSource } from '../../../schema/dsl.ts'
import type { LlmMeter } from '../../../telemetry/metrics/llm.ts'
import type { Authorize } from '../../../upstream/auth.ts'
import { isCredential } from '../../../upstream/auth.ts'
import type { LlmConfig, LlmParams, ModelConfig, ProviderConfig } from '../config/config.ts'
import type { Provider } from '../providers/provider.ts'
import { findProvider } from '../providers/providers.ts'
import { type Cooldown, retainCooldown } from './cooldown.ts'

/** A compiled entry of `llm.models`, or a provider of an `ai` backend. */
export type Target = {
  /** `name` of the entry. */
  readonly configuredModel: string
  readonly provider: Provider
  /** Model sent upstream; undefined for the requested model. */
  readonly upstreamModel: string | undefined
  readonly origin: string
  /** Prefix of the provider's paths. */
  readonly basePath: string
  /** Path of every call in place of the provider's paths. */
  readonly fixedPath: string | undefined
  /** Passthrough paths are forwarded unchanged. */
  readonly preservesPath: boolean
  readonly connection: UpstreamConnection
  /** Undefined to forward the client's credential. */
  readonly credential: string | undefined
  /** The credential accepted by authentication is forwarded. */
  readonly forwardsCredential: boolean
  /** Adds a credential at a configured location in place of the provider's default. */
  readonly authorize: Authorize | undefined
  /** Header edits of the configuration. */
  readonly editHeaders: ((headers: Headers) => void) | undefined
  /** JSON texts by field: `overrides` are always set, `defaults` if absent. */
  readonly overrides: ReadonlyMap<string, string>
  readonly defaults: ReadonlyMap<string, string>
  readonly send: Send
  readonly meter: LlmMeter
  readonly cooldown: Cooldown
  /** `guardrails` of the model as configured; policies find the compiled ones by identity. */
  readonly guardrails: object | undefined
}

/**
 * Resolves provider, address and credential of a model. Throws for issues of `checkLlm` and unreadable files.
 */
export function compileTarget(model: ModelConfig, config: LlmConfig, context: CompileContext): Target {
  const shared = sharedProvider(model, config)
  const kind = typeof model.provider === 'string' ? model.provider : shared?.provider
  const provider = kind === undefined ? undefined : findProvider(kind)
  if (!provider) throw new Error(`llm.models "${model.name}": unknown provider`)
  const params: LlmParams = { ...shared?.params, ...definedOf(model.params) }
  const { origin, basePath } = addressOf(provider, params.baseUrl)
  const defaults = jsonTexts({ ...shared?.defaults, ...model.defaults })
  return {
    configuredModel: model.name,
    provider,
    upstreamModel: params.model,
    origin,
    basePath,
    fixedPath: undefined,
    preservesPath: false,
    connection: connectionTo(params.baseUrl === model.params?.baseUrl ? model : (shared ?? model), context),
    forwardsCredential: false,
    authorize: undefined,
    editHeaders: undefined,
    credential: readSecret(params.apiKey, `llm.models "${model.name}": params.apiKey`, context),
    overrides: jsonTexts(model.overrides ?? {}),
    guardrails: model.guardrails,
    defaults,
    send: provider.local ?? context.send,
    meter: context.metrics.llm(model.name, provider.name),
    cooldown: retainCooldown(
      `llm/cooldown/${model.id ?? model.name}/${origin}${basePath}/${params.model ?? ''}`,
      context,
    ),
  }
}

/** Connection settings with the egress policy of `node`, the configuration of the address. */
function connectionTo(node: object, { egress }: CompileContext): UpstreamConnection {
  const policy = egress.of(node)
  return { key: policy.key, egress: policy }
}

function sharedProvider(model: ModelConfig, { providers = [] }: LlmConfig): ProviderConfig | undefined {
  if (typeof model.provider === 'string') return undefined
  const { reference } = model.provider
  return providers.find((provider) => provider.name === reference)
}

/** Without undefined fields, which would hide shared ones. */
function definedOf(params: LlmParams | undefined): LlmParams {
  return Object.fromEntries(Object.entries(params ?? {}).filter(([, value]) => value !== undefined))
}

/**
 * Origin and base path of requests. A base address without a path uses the provider's default path. A version
 * in both the address and the provider's paths is used once, because users of Anthropic's API write addresses
 * with and without it.
 */
export function addressOf(
  provider: Provider,
  baseUrl: string | undefined,
): { origin: string; basePath: string } {
  const own = provider.address === undefined ? undefined : new URL(provider.address)
  const given = baseUrl === undefined ? own : new URL(baseUrl)
  if (!given) {
    if (provider.local) return { origin: '', basePath: '' }
    throw new Error(`provider "${provider.name}" requires params.baseUrl`)
  }
  const basePath = pathOf(given) || (own ? pathOf(own) : '/v1')
  const versioned = Object.values(provider.paths).every((path) => path?.startsWith('/v1/'))
  return {
    origin: given.origin,
    basePath: versioned && basePath.endsWith('/v1') ? basePath.slice(0, -3) : basePath,
  }
}

function pathOf(address: URL): string {
  return address.pathname.replace(/\/+$/, '')
}

/** The credential, read from its file if configured as one. `at` is the configuration key for errors. */
export function readSecret(
  source: SecretSource | undefined,
  at: string,
  { readFile }: CompileContext,
): string | undefined {
  if (source === undefined || typeof source === 'string') return source
  const place = `${at}: ${source.file}`
  const credential = readCredentialFile(() => readFile(source.file), place).trim()
  if (!isCredential(credential))
    throw new Error(`${place} does not contain a credential: printable ASCII on one line`)
  return credential
}

function readCredentialFile(read: () => string, place: string): string {
  try {
    return read()
  } catch (cause) {
    const reason = messageOf(cause)
    throw new Error(`${place} cannot be read: ${reason}`, { cause })
  }
}

export function jsonTexts(fields: Record<string, unknown>): Map<string, string> {
  return new Map(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]))
}
