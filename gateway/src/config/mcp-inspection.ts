import type { TargetConfig } from '../backends/mcp/config.ts'
import { prefixedNames } from '../backends/mcp/federation/names.ts'
import type { TargetLists } from '../backends/mcp/inspection/inspect-target.ts'
import { createInspections, type Inspections } from '../backends/mcp/inspection/inspection.ts'
import { compileTargets } from '../backends/mcp/mcp.ts'
import type { Target } from '../backends/mcp/targets/target.ts'
import type { JsonObject } from '../lib/json/json.ts'
import { createYieldPoint } from '../lib/scheduling/yielding.ts'
import type { CompileContext } from '../pipeline/compile-context.ts'
import type { Facts } from '../pipeline/exchange.ts'
import { loggableItemName, type McpItem, type McpItemKind } from '../pipeline/mcp/mcp-item.ts'
import { compilePatterns } from '../policies/api-key/name-patterns.ts'
import {
  allOfMcpAuthorizations,
  compileMcpAuthorization,
  type DecidingRule,
  type McpAuthorization,
} from '../policies/mcp-authorization.ts'
import { labelOfItemRules } from '../policies/registry/scope.ts'
import { compileNamedDestination, type UpstreamContext } from '../upstream/destination.ts'
import { compileNamedEndpoints } from '../upstream/endpoints.ts'
import { listenerAddresses } from './listener-addresses.ts'
import { targetPolicies } from './mcp/mcp.ts'
import { policyScopes } from './policy-scopes.ts'
import { mcpLimitsOf } from './process-limits.ts'
import type { Config } from './schema.ts'
import { trafficSections } from './traffic/sections.ts'

/** A question about the targets of the `mcp` section: plain data. */
export type McpQuestion =
  | { readonly kind: 'targets'; readonly refresh: boolean }
  | { readonly kind: 'target'; readonly name: string; readonly refresh: boolean }
  | ({ readonly kind: 'visible' } & McpClient)

/** A client as rules see it. */
export type McpClient = {
  /** Claims of its token; undefined without one. */
  readonly claims?: JsonObject | undefined
  /** Metadata of its virtual key; undefined without one. */
  readonly apiKey?: JsonObject | undefined
  /** Patterns of targets that its key allows; undefined for all. */
  readonly allowedTargets?: readonly string[] | undefined
  /** Address of the client. */
  readonly source?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export type McpTargetState = {
  readonly name: string
  readonly transport: 'stdio' | 'mcp' | 'sse' | 'openapi'
  readonly address?: string | undefined
  /** `pending`: a session is being opened. */
  readonly state: 'connected' | 'failed' | 'pending'
  readonly error?: string | undefined
  readonly tools?: number
  readonly prompts?: number
  readonly resources?: number
  /** ISO 8601. */
  readonly lastSeen?: string
}

export type McpTargetDetails = McpTargetState & {
  readonly protocolVersion?: string | undefined
  readonly serverInfo?: JsonObject | undefined
  readonly instructions?: string | undefined
  readonly capabilities?: JsonObject
  readonly lists?: TargetLists
}

export type VisibleItem = {
  readonly target: string
  readonly name: string
  /** Name for clients. */
  readonly exposedName: string
  readonly title?: string
  readonly visible: boolean
  /** Undefined if no rule decides. */
  readonly rule?: DecidingRule | undefined
  /** Reason of a hidden item without a deciding rule. */
  readonly reason?: 'no allow rule matches' | 'the key does not allow the server'
}

export type McpAnswer =
  | { readonly kind: 'targets'; readonly targets: readonly McpTargetState[] }
  | { readonly kind: 'target'; readonly target: McpTargetDetails | undefined }
  | {
      readonly kind: 'visible'
      readonly targets: readonly McpTargetState[]
      /** Whether there are rules. */
      readonly hasRules: boolean
      readonly tools: readonly VisibleItem[]
      readonly prompts: readonly VisibleItem[]
      readonly resources: readonly VisibleItem[]
      readonly resourceTemplates: readonly VisibleItem[]
    }

/** A page may be open for hours: programs start rarely, others are asked more often. */
const programAgeMs = 300_000
const remoteAgeMs = 30_000
const refreshAgeMs = 2_000
const listWaitMs = 3_000
const targetWaitMs = 30_000

/** Answers a question about the targets of the `mcp` section of the active configuration. */
export async function inspectMcp(
  config: Config | undefined,
  given: CompileContext,
  question: McpQuestion,
  version: string,
): Promise<McpAnswer> {
  const members = config === undefined ? [] : membersOf(config, given)
  const inspections = given.retained('mcp-inspections', () =>
    createInspections({ clock: given.clock, version }),
  )
  const read = (member: Member, options: ReadOptions) => readDetails(member, inspections, options)
  switch (question.kind) {
    case 'targets': {
      const options = { refresh: question.refresh, waitMs: listWaitMs }
      const found = await Promise.all(members.map((member) => read(member, options)))
      return { kind: 'targets', targets: found.map(stateOf) }
    }
    case 'target': {
      const member = members.find(({ target }) => target.name === question.name)
      const options = { refresh: question.refresh, waitMs: targetWaitMs }
      return { kind: 'target', target: member && (await read(member, options)) }
    }
    case 'visible': {
      const options = { refresh: false, waitMs: targetWaitMs }
      const found = await Promise.all(members.map((member) => read(member, options)))
      return await visibleTo(question, found, config ?? {}, given)
    }
  }
}

type Member = { readonly config: TargetConfig; readonly target: Target }

function membersOf(config: Config, given: CompileContext): Member[] {
  const { mcp } = config
  if (mcp === undefined) return []
  const { backends } = trafficSections(config, given.cached)
  const context: UpstreamContext = { ...given, backends, sessionKey: config.config?.session?.key }
  const targets = compileTargets(mcp, context, {
    limits: mcpLimitsOf(config.config?.limits ?? {}),
    policies: targetPolicies({ forwarding: mcp.policies }, context),
    destination: (reference, defaults) => compileNamedDestination(reference, backends, context, defaults),
    endpoints: (reference, defaults) => compileNamedEndpoints(reference, backends, context, defaults),
  })
  return mcp.targets.flatMap((one, index) => {
    const target = targets[index]
    return target === undefined ? [] : [{ config: one, target }]
  })
}

type ReadOptions = { readonly refresh: boolean; readonly waitMs: number }

async function readDetails(
  { config, target }: Member,
  inspections: Inspections,
  { refresh, waitMs }: ReadOptions,
): Promise<McpTargetDetails> {
  const transport = transportOf(config)
  const usualAgeMs = transport === 'stdio' ? programAgeMs : remoteAgeMs
  const maxAgeMs = refresh ? refreshAgeMs : usualAgeMs
  const inspection = await inspections.read(target, { maxAgeMs, waitMs })
  const own = { name: config.name, transport, address: addressOf(config) }
  if (inspection === undefined) return { ...own, state: 'pending' }
  const { inspected, at } = inspection
  const lastSeen = new Date(at).toISOString()
  if (inspected.kind === 'failed') return { ...own, state: 'failed', error: inspected.error, lastSeen }
  const { kind: _, tools, prompts, resources, resourceTemplates, ...rest } = inspected
  return {
    ...{ ...own, ...rest, state: 'connected', lastSeen },
    ...{ tools: tools.length, prompts: prompts.length, resources: resources.length },
    lists: { tools, prompts, resources, resourceTemplates },
  }
}

function stateOf(details: McpTargetDetails): McpTargetState {
  const { name, transport, address, state, error, tools, prompts, resources, lastSeen } = details
  return {
    ...{ name, transport, address, state, error },
    ...(tools !== undefined && { tools }),
    ...(prompts !== undefined && { prompts }),
    ...(resources !== undefined && { resources }),
    ...(lastSeen !== undefined && { lastSeen }),
  }
}

function transportOf({ stdio, sse, openapi }: TargetConfig): McpTargetState['transport'] {
  if (stdio !== undefined) return 'stdio'
  if (sse !== undefined) return 'sse'
  return openapi === undefined ? 'mcp' : 'openapi'
}

/** Address for display, without credentials: a program without its arguments. */
function addressOf({ stdio, mcp, sse, openapi }: TargetConfig): string | undefined {
  if (stdio !== undefined) return stdio.cmd
  const { host, backend, port } = mcp ?? sse ?? openapi ?? {}
  if (host === undefined) return backend
  const place = loggableItemName(host)
  return port === undefined ? place : `${place}:${port}`
}

const itemKinds = {
  tools: { kind: 'tool', nameField: 'name', method: 'tools/list' },
  prompts: { kind: 'prompt', nameField: 'name', method: 'prompts/list' },
  resources: { kind: 'resource', nameField: 'uri', method: 'resources/list' },
  resourceTemplates: { kind: 'resource', nameField: 'uriTemplate', method: 'resources/templates/list' },
} as const satisfies Record<keyof TargetLists, { kind: McpItemKind; nameField: string; method: string }>

async function visibleTo(
  client: McpClient,
  found: readonly McpTargetDetails[],
  config: Config,
  context: CompileContext,
): Promise<McpAnswer> {
  const rules = rulesOf(config, context)
  const facts = factsOf(client, context)
  const allows = compilePatterns(client.allowedTargets)?.allows ?? (() => true)
  const names = prefixedNames(found.map(({ name }) => name))
  const prefixMode = config.mcp?.prefixMode ?? 'conditional'
  const isPrefixed = prefixMode === 'always' || (prefixMode === 'conditional' && found.length > 1)
  const isMerged = found.length > 1 || prefixMode === 'always'
  const pause = createYieldPoint(context.clock)

  async function itemsOf(list: keyof TargetLists): Promise<VisibleItem[]> {
    const { kind, nameField, method } = itemKinds[list]
    const items: VisibleItem[] = []
    for (const [index, { name: target, lists }] of found.entries()) {
      for (const item of lists?.[list] ?? []) {
        const name = item[nameField]
        if (typeof name !== 'string') continue
        const uri = isMerged ? names.uriOf(index, name) : name
        const own = isPrefixed ? names.nameOf(index, name) : name
        const exposedName = kind === 'resource' ? uri : own
        const title = item['title'] ?? (kind === 'resource' ? item['name'] : undefined)
        items.push({
          ...{ target, name, exposedName },
          ...(typeof title === 'string' && { title }),
          ...decide({ method, kind, name, target }),
        })
        const waiting = pause()
        if (waiting) await waiting
      }
    }
    return items
  }

  function decide(item: McpItem): Pick<VisibleItem, 'visible' | 'rule' | 'reason'> {
    if (!allows(item.target)) return { visible: false, reason: 'the key does not allow the server' }
    if (rules === undefined) return { visible: true }
    const { visible, rule } = rules.explain(facts, item)
    if (rule === undefined && !visible) return { visible, reason: 'no allow rule matches' }
    return { visible, ...(rule !== undefined && { rule }) }
  }

  return {
    kind: 'visible',
    targets: found.map(stateOf),
    hasRules: rules !== undefined,
    tools: await itemsOf('tools'),
    prompts: await itemsOf('prompts'),
    resources: await itemsOf('resources'),
    resourceTemplates: await itemsOf('resourceTemplates'),
  }
}

/** The rules of the `mcp` section, behind those of the first gateway that serves it. */
function rulesOf(config: Config, context: CompileContext): McpAuthorization | undefined {
  const place = listenerAddresses(config).find(({ serves }) => serves.includes('mcp'))?.name
  const scopes = policyScopes(config, trafficSections(config, context.cached))
  const compiled = scopes.flatMap(({ name, path, policies: { mcpAuthorization: rules } }) => {
    if (rules === undefined || (path[0] !== 'mcp' && name !== `gateway ${place}`)) return []
    const label = labelOfItemRules(name)
    return context.cached(rules, `inspected ${label}`, () => compileMcpAuthorization(rules, context, label))
  })
  return allOfMcpAuthorizations(compiled)
}

function factsOf(
  { claims, apiKey, source = '127.0.0.1', headers = {} }: McpClient,
  { clock }: CompileContext,
): Facts {
  return {
    clock,
    request: {
      ...{ method: 'POST', scheme: 'http', host: 'localhost', path: '/mcp', query: '' },
      version: 'HTTP/1.1',
      headers: { ...headers },
      arrivedAt: clock.now(),
    },
    source: { address: source, port: 0 },
    jwt: claims,
    apiKey,
    body: undefined,
    llmRequest: undefined,
    llm: undefined,
    usage: undefined,
  }
}
