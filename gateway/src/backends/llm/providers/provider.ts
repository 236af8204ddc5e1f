import type { JsonObject } from '../../../lib/json/json.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { OutgoingRequest, Reply, Send } from '../../../net/http-client/send.ts'
import type { Schema } from '../../../schema/dsl.ts'
import type { BackendAuthConfig } from '../../../upstream/credentials/config.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** Path below the base address, or `absolute` from the root of its host. */
export type ProviderPath = string | { readonly absolute: string }

/** Paths of the supported calls, without a query. */
export type ProviderPaths = Readonly<Partial<Record<Endpoint, ProviderPath>>>

/** Properties of a call that determine its path. */
export type ProviderCall = {
  /** Model name sent upstream. */
  readonly model: string
  readonly streaming: boolean
}

/** Edits of a JSON body. Values are JSON texts. */
export type BodyChanges = { readonly set: ReadonlyMap<string, string>; readonly remove: ReadonlySet<string> }

/** One LLM service: address, supported calls and authentication. All functions are pure. */
export type Provider = {
  /** Name in metric labels, in the catalog and, for most kinds, in the configuration. */
  readonly name: string
  /** Base address, with the version segment if `paths` lack it; undefined if `params.baseUrl` is required. */
  readonly address: string | undefined
  readonly paths: ProviderPaths
  /** Paths of a call, in place of `paths`, of a service whose APIs depend on the model. */
  pathsFor?(call: ProviderCall): ProviderPaths
  /** Path prefix of passed-through calls, in place of the version in the client's path. */
  readonly passthroughPrefix?: string
  /** True if the path of an unknown call names another model. `path` is decoded, in lower case. */
  namesOtherModel?(path: string, model: string): boolean
  /** The query of a request to a path; `query` of the client is empty or starts with `?`. */
  editQuery?(query: string, path: string): string
  /** Query parameter of realtime with the model. Default: `model`. */
  readonly realtimeModelParameter?: string
  /** Edits of the body of a call of the provider's API, after all others. */
  changesFor?(endpoint: Endpoint, call: ProviderCall): BodyChanges | undefined
  /** Betas of Anthropic's API that the service reads in bodies; undefined if it reads headers. */
  readonly anthropicBetas?: ReadonlySet<string>
  /** Whether a model of such a service is one of Anthropic. */
  isAnthropicModel?(model: string): boolean
  /** `max_tokens` is sent as `max_completion_tokens` for this model. */
  renamesMaxTokens?(model: string): boolean
  /** Required headers; headers of the client take precedence. */
  readonly defaultHeaders?: Headers
  /** Converts a successful response of the service to one with JSON or server-sent events. */
  readReply?(endpoint: Endpoint, reply: Reply): Reply
  /** The error of a call in the shape of its API, of a service whose errors differ from it. */
  errorBody?(endpoint: Endpoint | 'passthrough', status: number, body: string): JsonObject | undefined
  /** Region of signatures, for addresses without one. */
  readonly signingRegion?: string
  /** Adds the credential to the request. */
  authorize(request: OutgoingRequest, credential: string): void
  /** Replaces the network for a provider inside the gateway. */
  readonly local?: Send
}

/** Settings of a provider kind; their schemas are `fields` of the kind. */
export type ProviderSettings = Readonly<Record<string, unknown>>

/** Reports a problem of a setting. */
export type ReportSetting = (field: string, message: string) => void

/** A kind of provider in the configuration. */
export type ProviderKind = {
  readonly name: string
  /** Calls that any of the kind's providers offers without translation, for error messages. */
  readonly calls?: readonly string[]
  /** Settings beside `model`: the fields of `ai.provider.<name>`. */
  readonly fields?: Readonly<Record<string, Schema>>
  /** Keys of `llm.models[].params` by setting. */
  readonly params?: Readonly<Record<string, string>>
  /** Settings without a default. */
  readonly required?: readonly string[]
  /** Authentication without a configured credential. Undefined to forward the credential of the client. */
  readonly ambientAuth?: BackendAuthConfig
  /** Reports problems of the settings beyond their schemas. */
  check?(settings: ProviderSettings, report: ReportSetting): void
  /** Creates the provider of a target from valid settings. */
  configure(settings: ProviderSettings): Provider
}

/** A kind without settings. */
export function fixedKind(provider: Provider): ProviderKind {
  return { name: provider.name, calls: Object.keys(provider.paths), configure: () => provider }
}

/** Paths of a call. */
export function pathsOf(provider: Provider, call: ProviderCall): ProviderPaths {
  return provider.pathsFor === undefined ? provider.paths : provider.pathsFor(call)
}

/** Adds `Authorization: Bearer`, the most common form. */
export function bearer(request: OutgoingRequest, credential: string): void {
  request.headers['authorization'] = `Bearer ${credential}`
}
