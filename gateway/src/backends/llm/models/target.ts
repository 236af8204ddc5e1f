import type { Headers } from '../../../net/http/headers.ts'
import type { Send, UpstreamConnection } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { LlmMeter } from '../../../telemetry/metrics/llm.ts'
import { compileConnection } from '../../../upstream/connection.ts'
import type { BackendAuthConfig } from '../../../upstream/credentials/config.ts'
import { compileHeaderModifier } from '../../../upstream/header-modifier.ts'
import { compileHealth } from '../../../upstream/health.ts'
import { compileResponseCache, type ResponseCache } from '../cache/cache.ts'
import type { LlmConfig, LlmParams, ModelConfig, ProviderConfig } from '../config/config.ts'
import { type ModelSettings, routingRoots } from '../config/model-settings.ts'
import type { Provider } from '../providers/provider.ts'
import { splitFields } from '../rewrite/field-pointers.ts'
import { compileRewrite, type Rewrite } from '../rewrite/rewrite.ts'
import type { ObjectKind } from '../stored/object-kinds.ts'
import { baseUrlOf } from './base-url.ts'
import { ambientAuthOf, chosenProvider, compileProvider } from './chosen-provider.ts'
import { compileEviction, type Eviction } from './eviction/eviction.ts'
import { compileProviderAuth, type ProviderAuth } from './provider-auth.ts'
import { type Latency, retainLatency } from './routing/latency.ts'
import { settingsOf, sharedProvider, tlsOf } from './settings.ts'
import { compileSlots, type Slots } from './slots/slots.ts'
import { compileModelTransformation, type Transform } from './transformation.ts'

const transformationVariables: ReadonlySet<string> = new Set(routingRoots)

/** A compiled entry of `llm.models`, or a provider of an `ai` backend. */
export type Target = ProviderAuth & {
  /** `name` of the entry. */
  readonly configuredModel: string
  readonly provider: Provider
  /** Model sent upstream; undefined for the requested model. */
  readonly upstreamModel: string | undefined
  /** `overrides.model`, also of calls that have the model in their path. */
  readonly overridingModel?: string | undefined
  readonly origin: string
  /** Prefix of the provider's paths. */
  readonly basePath: string
  /** Path of every call in place of the provider's paths. */
  readonly fixedPath: string | undefined
  /** Passthrough paths are forwarded unchanged. */
  readonly preservesPath: boolean
  readonly connection: UpstreamConnection
  /** Header edits of the configuration, of requests and of responses. */
  readonly editHeaders: ((headers: Headers) => void) | undefined
  readonly editReplyHeaders: ((headers: Headers) => void) | undefined
  /** JSON texts by field: `overrides` are always set, `defaults` if absent. */
  readonly overrides: ReadonlyMap<string, string>
  readonly defaults: ReadonlyMap<string, string>
  /** Fields of the client that are not sent: their expressions failed. */
  readonly removed?: ReadonlySet<string> | undefined
  /** Computes further overrides for each request. */
  readonly transform?: Transform | undefined
  /** Requests are forwarded unchanged; `detect` reads the usage of responses. */
  readonly passthrough?: 'detect' | 'opaque' | undefined
  /** Changes of bodies beyond fields of the outermost object. */
  readonly rewrite: Rewrite | undefined
  readonly send: Send
  readonly meter: LlmMeter
  readonly eviction: Eviction
  /** Stored responses; undefined without `cache`. */
  readonly cache?: ResponseCache | undefined
  /** Observed times to the first byte; undefined if no virtual model prefers short ones. */
  readonly latency?: Latency | undefined
  /** Slots of concurrent calls; undefined without a limit. */
  readonly slots?: Slots | undefined
  /** Labels of the model. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Objects of the provider that clients may name without a check of the owner. */
  readonly sharedObjects: ReadonlySet<ObjectKind>
  /** `guardrails` of the model as configured; policies find the compiled ones by identity. */
  readonly guardrails: object | undefined
  /** `authorization` of the model, likewise. */
  readonly authorization: object | undefined
}

/**
 * Resolves provider, address and credential of a model. Throws for issues of `checkLlm` and unreadable files.
 */
export function compileTarget(model: ModelConfig, config: LlmConfig, context: CompileContext): Target {
  const shared = sharedProvider(model, config)
  const at = `llm.models "${model.name}"`
  const params: LlmParams = { ...shared?.params, ...definedOf(model.params) }
  const choice = chosenProvider(model, shared)
  const provider = choice && compileProvider(choice, params)
  if (!provider) throw new Error(`${at}: unknown provider`)
  const settings = settingsOf(model, shared)
  const { auth, health, requestHeaders, responseHeaders, backendTunnel } = settings
  const tls = tlsOf(settings)
  const baseUrl = params.baseUrl ?? baseUrlOf(params, provider, tls !== undefined)
  const { origin, basePath } = addressOf(provider, baseUrl)
  const identity = model.id ?? model.name
  const upstreamModel = params.model ?? (typeof choice === 'object' ? choice.custom.model : undefined)
  return {
    configuredModel: model.name,
    provider,
    upstreamModel,
    origin: tls === undefined ? origin : origin.replace(/^http:/, 'https:'),
    basePath,
    fixedPath: params.pathOverride,
    preservesPath: false,
    connection: compileConnection(
      { backendTLS: tls, backendTunnel },
      context.egress.of(addressNode(model, shared)),
      context,
    ),
    ...compileProviderAuth(
      auth ?? keyAuth(params.apiKey) ?? ambientAuthOf(choice),
      {
        at: `${at}: ${auth ? 'auth.key' : 'params.apiKey'}`,
        use: {
          source: auth ?? shared ?? model,
          destination: addressNode(model, shared),
          connection: { backendTLS: tls, backendTunnel },
        },
        region: provider.signingRegion,
      },
      context,
    ),
    editHeaders: requestHeaders && compileHeaderModifier(requestHeaders),
    editReplyHeaders: responseHeaders && compileHeaderModifier(responseHeaders),
    passthrough: model.passthrough,
    sharedObjects: new Set(model.sharedObjects),
    ...(model.passthrough === undefined ? compileBody(settings) : unchangedBody),
    cache:
      model.cache &&
      compileResponseCache(
        model.cache,
        { place: model.id ?? model.name, model: model.name, settings: [model, shared] },
        context,
      ),
    guardrails: model.guardrails,
    authorization: model.authorization,
    send: provider.local ?? context.send,
    meter: context.metrics.llm(model.name, provider.name),
    labels: model.labels,
    slots: model.concurrency && compileSlots(model.concurrency, `llm/slots/${identity}`, context),
    latency: observesLatency(config)
      ? retainLatency(`llm/latency/${identity}/${origin}${basePath}/${params.model ?? ''}`, context)
      : undefined,
    eviction: compileEviction(
      {
        name: `llm/eviction/${identity}/${origin}${basePath}/${params.model ?? ''}`,
        place: `llm/${identity}`,
        health: health && compileHealth(health, `llm/${identity}`, context),
      },
      context,
    ),
  }
}

/** Whether requests have the credential of the client, whose account has the objects. */
export function isOfClient({ credential, configuredKey, authorize }: ProviderAuth): boolean {
  const isOwn = credential !== undefined || configuredKey !== undefined
  return !isOwn && (authorize === undefined || authorize.isPassthrough === true)
}

function observesLatency({ virtualModels = [] }: LlmConfig): boolean {
  return virtualModels.some(({ routing }) => routing.failover?.prefer === 'latency')
}

function keyAuth(key: LlmParams['apiKey']): BackendAuthConfig | undefined {
  return key === undefined ? undefined : { key }
}

/** The configuration object with the address: its source determines the egress policy. */
function addressNode(model: ModelConfig, shared: ProviderConfig | undefined): object {
  const hasOwn = model.params?.baseUrl !== undefined || model.params?.hostOverride !== undefined
  return hasOwn ? model : (shared ?? model)
}

/** Without undefined fields, which would hide shared ones. */
function definedOf(params: LlmParams | undefined): LlmParams {
  return Object.fromEntries(Object.entries(params ?? {}).filter(([, value]) => value !== undefined))
}

/**
 * Origin and base path of requests. A base address without a path uses the provider's default path.
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
  return { origin: given.origin, basePath: pathOf(given) || (own ? pathOf(own) : '/v1') }
}

function pathOf(address: URL): string {
  return address.pathname.replace(/\/+$/, '')
}

function jsonTexts(fields: Readonly<Record<string, unknown>>): Map<string, string> {
  return new Map(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]))
}

const unchangedBody = {
  overrides: new Map<string, string>(),
  defaults: new Map<string, string>(),
  transform: undefined,
  rewrite: undefined,
}

/** Compiles the changes of request bodies. */
export function compileBody(
  settings: BodySettings,
): Pick<Target, 'overrides' | 'defaults' | 'transform' | 'rewrite' | 'overridingModel'> {
  const { transformation, finalTransformation, prompts, promptCaching } = settings
  const defaults = splitFields(settings.defaults, 'defaults')
  const overrides = splitFields(settings.overrides)
  const { model, ...others } = overrides.plain
  // Every call names a model.
  const { model: _, ...absent } = defaults.plain
  return {
    overridingModel: typeof model === 'string' ? model : undefined,
    overrides: jsonTexts(others),
    defaults: jsonTexts(absent),
    transform: transformation && compileModelTransformation(transformation, transformationVariables),
    rewrite: compileRewrite({ defaults, overrides, prompts, promptCaching, finalTransformation }),
  }
}

/** Settings of a model that change bodies. */
type BodySettings = Pick<
  ModelSettings,
  'defaults' | 'overrides' | 'transformation' | 'finalTransformation' | 'prompts' | 'promptCaching'
>
