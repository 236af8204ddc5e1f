import { type FilterField, filterFields } from '../../ledger/query/search/fields.ts'
import { maxBuckets } from '../../ledger/query/summary/buckets.ts'
import { type GroupOrder, groupOrders } from '../../ledger/query/summary/groups.ts'
import type { SummaryQuery } from '../../ledger/query/summary/summary.ts'
import { dayMs } from '../../lib/duration.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { attributeFields, fieldAliases, readFilters } from './filters.ts'
import { checkMembers, invalid, readInteger } from './read-value.ts'
import { readTimeRange } from './search-request.ts'

const defaultBucketCount = 96
const maxBucketCount = 500
const maxRangeMs = 10 * 366 * dayMs

/** Fields to group by. */
export const groupFields: readonly FilterField[] = [
  'kind',
  'status',
  'errorCode',
  'route',
  'listener',
  'keyId',
  'keyName',
  'user',
  'group',
  'client',
  'userAgent',
  'operation',
  'provider',
  'requestModel',
  'servedModel',
  'costStatus',
  'streaming',
  'mcpMethod',
  'mcpTarget',
  'mcpItem',
]

/** `names`: members of groups in the response, as the client named them. */
export type SummaryRequest = { readonly query: SummaryQuery; readonly names: readonly string[] }

/** Reads the body of `/api/logs/analytics/summary`. Throws `InvalidRequest`. */
export function readSummaryRequest(body: JsonObject, now: number): SummaryRequest {
  checkMembers(body, '', ['timeRange', 'filters', 'groupBy', 'orderBy', 'bucketCount', 'bucketSeconds'])
  const range = readTimeRange(body)
  const to = range.to ?? Math.max(now, (range.from ?? 0) + 1)
  const from = range.from ?? Math.max(0, to - dayMs)
  if (to - from > maxRangeMs) throw invalid('timeRange', 'must be at most 10 years')
  const groups = readGroupBy(body['groupBy'])
  const bucketCount = readInteger(body['bucketCount'], 'bucketCount', { min: 1, max: maxBucketCount })
  const bucketSeconds = readInteger(body['bucketSeconds'], 'bucketSeconds', {
    min: 1,
    max: maxRangeMs / 1_000,
  })
  if (bucketSeconds !== undefined && (to - from) / (bucketSeconds * 1_000) > maxBuckets)
    throw invalid('bucketSeconds', `must divide the time range into at most ${maxBuckets} buckets`)
  return {
    query: {
      filter: { from, to, ...readFilters(body['filters']) },
      groupBy: groups.map(({ field }) => field),
      orderBy: readOrder(body['orderBy']),
      bucketCount: bucketCount ?? defaultBucketCount,
      bucketMs: bucketSeconds === undefined ? undefined : bucketSeconds * 1_000,
    },
    names: groups.map(({ name }) => name),
  }
}

function readOrder(value: JsonValue | undefined): GroupOrder {
  if (value === undefined || value === null) return 'requests'
  const order = groupOrders.find((one) => one === value)
  if (order === undefined) throw invalid('orderBy', `must be one of ${groupOrders.join(', ')}`)
  return order
}

type NamedGroup = { readonly name: string; readonly field: FilterField }

function readGroupBy(value: JsonValue | undefined): NamedGroup[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || value.length > 2)
    throw invalid('groupBy', 'must be a list of at most 2 fields')
  const groups = value.map((item, index) => readGroup(item, `groupBy[${index}]`))
  if (groups[0]?.field === groups[1]?.field && groups.length === 2)
    throw invalid('groupBy', 'must not contain a field twice')
  return groups
}

function readGroup(value: JsonValue, place: string): NamedGroup {
  if (!isJsonObject(value)) throw invalid(place, 'must be an object with a field')
  checkMembers(value, place, ['field', 'key'])
  const { field: name, key } = value
  if (name === 'attributes') {
    const field = typeof key === 'string' ? ownValue(attributeFields, key) : undefined
    if (typeof key !== 'string' || field === undefined)
      throw invalid(`${place}.key`, `must be one of ${Object.keys(attributeFields).join(', ')}`)
    return { name: key, field }
  }
  const field = typeof name === 'string' ? groupField(name) : undefined
  if (typeof name !== 'string' || field === undefined) {
    const known = ['provider', 'requestModel', 'responseModel', 'httpStatus', 'attributes', ...groupFields]
    throw invalid(`${place}.field`, `must be one of ${[...new Set(known)].join(', ')}`)
  }
  return { name, field }
}

function groupField(name: string): FilterField | undefined {
  const alias = ownValue(fieldAliases, name)
  if (alias !== undefined) return alias
  return groupFields.find((field) => field === name && Object.hasOwn(filterFields, field))
}

function ownValue<T>(values: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined
}
