import { createCancellation } from '../../../lib/cancellation.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { readAllPages } from '../federation/list-all.ts'
import { errorCodeOf, sendGatewayRequest } from '../message/gateway-request.ts'
import { itemListOf } from '../message/items.ts'
import { messageOf } from '../message/json-rpc.ts'
import type { TargetFailure } from '../message/message.ts'
import { revisions } from '../message/protocol.ts'
import { withInitializeLimit } from '../targets/initialize-limit.ts'
import type { CallContext, Target, TargetSession } from '../targets/target.ts'

/** Lists of a target as the target returned them, without rules. */
export type TargetLists = {
  readonly tools: readonly JsonObject[]
  readonly prompts: readonly JsonObject[]
  readonly resources: readonly JsonObject[]
  readonly resourceTemplates: readonly JsonObject[]
}

/** Result of a session at a target. */
export type Inspected =
  | ({
      readonly kind: 'connected'
      readonly protocolVersion: string | undefined
      readonly serverInfo: JsonObject | undefined
      readonly instructions: string | undefined
      readonly capabilities: JsonObject
    } & TargetLists)
  | { readonly kind: 'failed'; readonly error: string }

export type InspectionLimits = {
  /** Time for the response to `initialize`, the start of a program included. */
  readonly initializeMs: number
  /** Time for the whole session. */
  readonly totalMs: number
}

const listMethods = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
} as const

const maxInstructions = 10_000

/** Opens a session at a target as clients do, reads its lists, and ends the session. Never rejects. */
export async function inspectTarget(
  target: Target,
  version: string,
  limits: InspectionLimits,
): Promise<Inspected> {
  const cancellation = createCancellation()
  const session = withInitializeLimit(target, limits.initializeMs).open()
  const late = Promise.withResolvers<Inspected>()
  const timer = setTimeout(() => {
    cancellation.cancel()
    late.resolve({ kind: 'failed', error: `the lists did not arrive within ${limits.totalMs / 1_000} s` })
  }, limits.totalMs)
  timer.unref()
  const context: CallContext = { headers: {}, cancellation }
  try {
    const reading = readSession(session, context, version)
    // A late failure has no receiver.
    reading.catch(() => undefined)
    return await Promise.race([reading, late.promise])
  } catch (error) {
    return { kind: 'failed', error: error instanceof Error ? error.message : 'internal error' }
  } finally {
    clearTimeout(timer)
    void session.close()
  }
}

async function readSession(
  session: TargetSession,
  context: CallContext,
  version: string,
): Promise<Inspected> {
  const initialized = await initialize(session, context, version)
  if (initialized.kind === 'failed') return initialized
  const { result } = initialized
  const { protocolVersion, serverInfo, instructions } = result
  const capabilities = isJsonObject(result['capabilities']) ? result['capabilities'] : {}
  const known = typeof protocolVersion === 'string' ? { ...context, protocolVersion } : context
  await session.deliver(messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' }), known)
  const lists = await readLists(session, known, capabilities)
  if (lists.kind === 'failed') return lists
  return {
    ...lists.lists,
    kind: 'connected',
    protocolVersion: typeof protocolVersion === 'string' ? protocolVersion : undefined,
    serverInfo: isJsonObject(serverInfo) ? serverInfo : undefined,
    instructions: typeof instructions === 'string' ? instructions.slice(0, maxInstructions) : undefined,
    capabilities,
  }
}

type Failed = Extract<Inspected, { kind: 'failed' }>

async function initialize(
  session: TargetSession,
  context: CallContext,
  version: string,
): Promise<{ kind: 'initialized'; result: JsonObject } | Failed> {
  const [protocolVersion = ''] = revisions
  const request = messageOf({
    ...{ jsonrpc: '2.0', id: 'inspect-0', method: 'initialize' },
    params: { protocolVersion, capabilities: {}, clientInfo: { name: 'tollgate-console', version } },
  })
  const outcome = await sendGatewayRequest(session, request, context, ignore).outcome
  if (outcome.kind === 'failed') return { kind: 'failed', error: failureText(outcome.failure) }
  const { value } = outcome.message
  if (errorCodeOf(outcome.message) !== undefined) return { kind: 'failed', error: errorTextOf(value) }
  const { result } = value
  return isJsonObject(result)
    ? { kind: 'initialized', result }
    : { kind: 'failed', error: 'the response to initialize has no result' }
}

async function readLists(
  session: TargetSession,
  context: CallContext,
  capabilities: JsonObject,
): Promise<{ kind: 'lists'; lists: TargetLists } | Failed> {
  const lists: Record<keyof TargetLists, JsonObject[]> = {
    ...{ tools: [], prompts: [], resources: [], resourceTemplates: [] },
  }
  let requests = 0
  const newId = () => {
    requests += 1
    return `inspect-${requests}`
  }
  for (const name of ['tools', 'prompts', 'resources', 'resourceTemplates'] as const) {
    const capability = name === 'resourceTemplates' ? 'resources' : name
    if (!isJsonObject(capabilities[capability])) continue
    const method = listMethods[name]
    const read = await readAllPages({
      ...{ session, context, newId, cursor: undefined, onOther: ignore },
      message: messageOf({ jsonrpc: '2.0', id: newId(), method, params: {} }),
      member: itemListOf(method)?.member ?? name,
      add: (asking) => asking,
    })
    if (read.kind === 'failed') return { kind: 'failed', error: `${method}: ${failureText(read.failure)}` }
    if (read.kind === 'error')
      return { kind: 'failed', error: `${method}: ${errorTextOf(read.message.value)}` }
    for (const text of read.items) {
      const item: unknown = JSON.parse(text)
      if (isJsonObject(item)) lists[name].push(item)
    }
  }
  return { kind: 'lists', lists }
}

function ignore(): boolean {
  return true
}

/** Text of a failure for operators of the gateway. */
function failureText(failure: TargetFailure): string {
  switch (failure.kind) {
    case 'error':
      return failure.error.message
    case 'reply':
      return replyText(failure.reply.status)
    case 'ended':
      return `the session has ended: ${failure.reason}`
    case 'unknown':
      return `the ${failure.item} does not exist`
    case 'refused':
      return failure.message
  }
}

function replyText(status: number): string {
  if (status !== 401 && status !== 403) return `the server responded with status ${status}`
  return `the server refused the request with status ${status}: it requires credentials, which clients send or policies.backendAuth sets`
}

function errorTextOf({ error }: JsonObject): string {
  const message: JsonValue | undefined = isJsonObject(error) ? error['message'] : undefined
  return typeof message === 'string' ? message.slice(0, 500) : 'the server responded with an error'
}
