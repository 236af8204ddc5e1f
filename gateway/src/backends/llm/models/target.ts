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

/** One entry of `llm.models`, ready to be called. */
export type Target = {
  /** `name` of the entry. */
  readonly configuredModel: string
  readonly provider: Provider
  /** Model sent upstream; undefined: the one that was asked for. */
  readonly upstreamModel: string | undefined
  readonly origin: string
  /** Path in front of the provider's own paths. */
  readonly basePath: string
  /** Path of every call, where it is none of the provider's own. */
  readonly fixedPath: string | undefined
  /** Whether paths that are passed through stay as they are. */
  readonly preservesPath: boolean
  readonly connection: UpstreamConnection
  /** Undefined: the client's own credential goes through. */
  readonly credential: string | undefined
  /** Whether what the client was authenticated with is passed on. */
  readonly forwardsCredential: boolean
  /** Puts a credential elsewhere than the provider usually has it. */
  readonly authorize: Authorize | undefined
  /** Changes of what the client's request had for header fields. */
  readonly editHeaders: ((headers: Headers) => void) | undefined
  /** JSON texts by field, set always and set where absent. */
  readonly overrides: ReadonlyMap<string, string>
  readonly defaults: ReadonlyMap<string, string>
  readonly send: Send
  readonly meter: LlmMeter
  readonly cooldown: Cooldown
  /** As configured: what policies know the model by. */
  readonly guardrails: object | undefined
}

/** What is remembered of a target's failures, across reloads. */
export type Cooldown = { until: number }

/** Resolves provider, address and credential of a model; throws on what `checkLlm` reports, and on an unreadable file. */
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
    cooldown: context.retained(
      `llm/cooldown/${model.id ?? model.name}/${origin}${basePath}/${params.model ?? ''}`,
      () => ({
        until: 0,
      }),
    ),
  }
}

/** Connections as usual to an address that `node` names. */
function connectionTo(node: object, { egress }: CompileContext): UpstreamConnection {
  const policy = egress.of(node)
  return { key: policy.key, egress: policy }
}

function sharedProvider(model: ModelConfig, { providers = [] }: LlmConfig): ProviderConfig | undefined {
  if (typeof model.provider === 'string') return undefined
  const { reference } = model.provider
  return providers.find((provider) => provider.name === reference)
}

/** A field written as undefined must not hide the shared one. */
function definedOf(params: LlmParams | undefined): LlmParams {
  return Object.fromEntries(Object.entries(params ?? {}).filter(([, value]) => value !== undefined))
}

/**
 * A base address with a path replaces the provider's own path, one without keeps it. The version is not doubled where
 * both the address and the provider's paths carry it, since users of Anthropic's API write it either way.
 */
export function addressOf(
  provider: Provider,
  baseUrl: string | undefined,
): { origin: string; basePath: string } {
  const own = provider.address === undefined ? undefined : new URL(provider.address)
  const given = baseUrl === undefined ? own : new URL(baseUrl)
  if (!given) {
    if (provider.local) return { origin: '', basePath: '' }
    throw new Error(`provider "${provider.name}" needs params.baseUrl`)
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

/** The credential, read from its file where it is in one. `at` names the key of the configuration. */
export function readSecret(
  source: SecretSource | undefined,
  at: string,
  { readFile }: CompileContext,
): string | undefined {
  if (source === undefined || typeof source === 'string') return source
  const place = `${at}: ${source.file}`
  const credential = readCredentialFile(() => readFile(source.file), place).trim()
  if (!isCredential(credential))
    throw new Error(`${place} does not hold a credential: printable ASCII on one line`)
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
