import { parseTimestamp } from '../../lib/timestamp.ts'
import { namedId, readUuid } from '../change/identity.ts'
import { findKind } from '../kinds.ts'
import type { Resources } from '../resources.ts'
import type { HistoryQuery } from '../stores/store.ts'

/** Query of a list of recorded changes. */
export type HistoryFilter = {
  readonly kind: 'filter'
  readonly query: Omit<HistoryQuery, 'limit' | 'below'>
  /** Lower-case text in the record as it is shown, without secrets. */
  readonly text: string | undefined
  readonly limit: number
  /** Records before this one only. */
  readonly below: number | undefined
}

export type InvalidFilter = { readonly kind: 'invalid'; readonly message: string }

const parameters = ['kind', 'id', 'who', 'from', 'to', 'text', 'limit', 'cursor']
const maxLimit = 500
const defaultLimit = 100
const maxTextCharacters = 200

/** Reads the query of a list. Unknown and repeated parameters are invalid. */
export function readHistoryFilter(
  queryText: string,
  resources: Pick<Resources, 'find'>,
): HistoryFilter | InvalidFilter {
  const sent = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(queryText)) {
    const shown = name.slice(0, 100)
    if (!parameters.includes(name))
      return invalid(`unknown query parameter ${shown}: known are ${parameters.join(', ')}`)
    if (sent.has(name)) return invalid(`${shown} is in the query more than once`)
    if (value.length > maxTextCharacters || value.includes('\0') || !value.isWellFormed())
      return invalid(`${shown} must be Unicode text of at most ${maxTextCharacters} characters without NUL`)
    sent.set(name, value)
  }
  const times = readTimes(sent)
  if (times.kind === 'invalid') return times
  const resource = readResource(sent, resources)
  if (resource.kind === 'invalid') return resource
  const limit = sent.get('limit')
  if (limit !== undefined && !(/^[1-9]\d{0,2}$/.test(limit) && Number(limit) <= maxLimit))
    return invalid(`limit must be a number from 1 to ${maxLimit}`)
  const cursor = sent.get('cursor')
  if (cursor !== undefined && !isHistoryId(cursor))
    return invalid('cursor must be the nextCursor of a response')
  const who = sent.get('who')
  return {
    kind: 'filter',
    query: { ...times.times, ...resource.resource, ...(who === undefined ? {} : { who }) },
    text: sent.get('text')?.toLowerCase(),
    limit: limit === undefined ? defaultLimit : Number(limit),
    below: cursor === undefined ? undefined : Number(cursor),
  }
}

/** Whether a text is an id of the history. */
export function isHistoryId(text: string): boolean {
  return /^[1-9]\d{0,14}$/.test(text)
}

function readTimes(
  sent: ReadonlyMap<string, string>,
): { readonly kind: 'times'; readonly times: Pick<HistoryQuery, 'from' | 'to'> } | InvalidFilter {
  const times: { from?: string; to?: string } = {}
  for (const name of ['from', 'to'] as const) {
    const text = sent.get(name)
    if (text === undefined) continue
    const time = parseTimestamp(dateForm.test(text) ? `${text}T00:00:00Z` : text)
    if (time === undefined)
      return invalid(`${name} must be a date or a time of RFC 3339, such as 2026-01-31T08:00:00Z`)
    times[name] = new Date(time).toISOString()
  }
  return { kind: 'times', times }
}

const dateForm = /^\d{4}-\d\d-\d\d$/

function readResource(
  sent: ReadonlyMap<string, string>,
  resources: Pick<Resources, 'find'>,
):
  | { readonly kind: 'resource'; readonly resource: Pick<HistoryQuery, 'kind' | 'resourceId'> }
  | InvalidFilter {
  const kindName = sent.get('kind')
  const kind = kindName === undefined ? undefined : findKind(kindName)
  if (kindName !== undefined && kind === undefined)
    return invalid(`unsupported config resource kind: ${kindName}`)
  const ofKind = kindName === undefined ? {} : { kind: kindName }
  const id = sent.get('id')
  if (id === undefined) return { kind: 'resource', resource: ofKind }
  const uuid = readUuid(id)
  if (uuid !== undefined) return { kind: 'resource', resource: { ...ofKind, resourceId: uuid } }
  if (kind === undefined) return invalid('id must be a UUID, or a name together with kind')
  const found = resources.find(kind, id)
  const resourceId = found.kind === 'found' ? found.envelope.id : namedId(kind.name, id)
  return { kind: 'resource', resource: { ...ofKind, resourceId } }
}

function invalid(message: string): InvalidFilter {
  return { kind: 'invalid', message }
}
