import { ownerOf } from '../../../identity/owner.ts'
import type { FoundObjects } from '../../../lib/planes/object-records.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { type Refusal, refuse } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { forwardingOf } from '../../../pipeline/request-edits.ts'
import { queryOf } from '../attempt/provider-request.ts'
import { acceptObject, openObject } from '../batches/accept-object.ts'
import type { ObjectEndpoint } from '../batches/object-path.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { invalidField } from '../request/body-checks.ts'
import { operations } from '../request/endpoints.ts'
import { configuredOf } from '../request/llm-message.ts'
import { readListQuery } from './list-query.ts'
import type { ListedObject } from './object-list.ts'
import type { OwnedObjects, OwnedQuery } from './owned-objects.ts'

/** Reads a list of files or batches: the objects that this client has created through the gateway. */
export async function readList(
  exchange: Exchange,
  endpoint: ObjectEndpoint,
  rules: RequestRules,
): Promise<Reply | undefined> {
  exchange.facts.body = new Uint8Array(0)
  const { ownedObjects } = rules
  if (ownedObjects === undefined) return refuse(exchange, noDatabase)
  const read = readListQuery(endpoint, queryOf(exchange))
  if (read.kind === 'refused') return refuse(exchange, read.refusal)
  const { query, isReversed, cursorParameter } = read
  const found = await findObjects(exchange, { ownedObjects, endpoint, query })
  if (found.kind === 'failed') return refuse(exchange, unavailable)
  if (found.ids === undefined) return refuse(exchange, unknownCursor(cursorParameter))
  const page = found.ids.slice(0, query.limit)
  const ids = isReversed ? page.toReversed() : page
  const { llm } = exchange
  if (llm === undefined) return undefined
  const objects = ids.flatMap((id) => listedObject(exchange, { endpoint, id }, rules) ?? [])
  const list = { endpoint, objects, hasMore: found.ids.length > query.limit, cursor: page.at(-1) }
  llm.list = list
  llm.isFree = true
  llm.eachRequest = async (check) => {
    list.objects = await permitted(list.objects, check)
    return undefined
  }
  return undefined
}

type Finding = {
  readonly ownedObjects: OwnedObjects
  readonly endpoint: ObjectEndpoint
  readonly query: OwnedQuery
}

/** The ids of a page, and one more if there are more. */
async function findObjects(
  exchange: Exchange,
  { ownedObjects, endpoint, query }: Finding,
): Promise<{ kind: 'found'; ids: FoundObjects } | { kind: 'failed' }> {
  try {
    const limit = query.limit + 1
    return { kind: 'found', ids: await ownedObjects.find(ownerOf(exchange), endpoint, { ...query, limit }) }
  } catch (error) {
    exchange.log.failure = error
    return { kind: 'failed' }
  }
}

/** The call that reads an object; undefined if the key or the configuration permits it no more. */
function listedObject(
  exchange: Exchange,
  { endpoint, id }: { endpoint: ObjectEndpoint; id: string },
  rules: RequestRules,
): ListedObject | undefined {
  const found = openObject(exchange, { endpoint, id }, rules)
  if (found === undefined) return undefined
  const { stored, candidate } = found
  const own = exchangeOf(exchange, endpoint, rules)
  const object = {
    action: 'read',
    suffix: `/${encodeURIComponent(stored.id)}`,
    stored,
    batch: undefined,
    charge: undefined,
  } as const
  const { requestModel } = stored
  const call = { endpoint, candidate, requestModel, json: undefined, files: undefined, object }
  return acceptObject(own, call, rules) === undefined ? { id, exchange: own } : undefined
}

/** The exchange of one object: that of the list with facts of its own, and without its query. */
function exchangeOf(exchange: Exchange, endpoint: ObjectEndpoint, rules: RequestRules): Exchange {
  const own: Exchange = {
    ...exchange,
    facts: { ...exchange.facts, llm: undefined, llmRequest: undefined },
    forwarding: exchange.forwarding && { ...exchange.forwarding },
    log: { ...exchange.log },
    recording: undefined,
    guards: undefined,
    llm: {
      operation: operations[endpoint],
      estimate: rules.estimate,
      message: undefined,
      rulesOfModels: ({ llm }) => (llm?.call === undefined ? [] : configuredOf(llm.call, 'authorization')),
      call: undefined,
    },
  }
  forwardingOf(own).query = /[?&]beta=true(?:&|$)/.test(queryOf(exchange)) ? '?beta=true' : ''
  return own
}

type Check = (exchange: Exchange) => Reply | undefined | Promise<Reply | undefined>

/** The objects that rules permit to read. */
async function permitted(objects: readonly ListedObject[], check: Check): Promise<ListedObject[]> {
  const found: ListedObject[] = []
  for (const object of objects) if ((await check(object.exchange)) === undefined) found.push(object)
  return found
}

const noDatabase: Refusal = {
  status: 400,
  code: 'unsupported_endpoint',
  message:
    'lists of files and batches require a database, because the provider lists those of all clients: set config.database.url, or store the ids that create calls return',
}

const unavailable: Refusal = {
  status: 503,
  code: 'database_unavailable',
  message: 'the database of files and batches is not available: try again later',
  headers: { 'retry-after': '1' },
}

function unknownCursor(parameter: string): Refusal {
  return invalidField(parameter, `${parameter} must be the id of an object of this client`)
}
