import { type FilterField, filterFields } from '../../ledger/query/search/fields.ts'
import { type Condition, maxConditions, maxTextLength, maxValues } from '../../ledger/query/search/filter.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../lib/json/json.ts'
import { picodollarsPerDollar } from '../../lib/picodollars.ts'
import { checkMembers, invalid, readObject, readText, readTime } from './read-value.ts'

/** Names of fields in the reference product. */
export const fieldAliases: Readonly<Record<string, FilterField>> = {
  httpStatus: 'status',
  responseModel: 'servedModel',
  error: 'errorCode',
}

/** Attributes of the reference product. */
export const attributeFields: Readonly<Record<string, FilterField>> = {
  'agentgateway.user': 'user',
  'agentgateway.group': 'group',
  'user_agent.name': 'userAgent',
}

/** Members of `filters`, beside `text` and `attributes`. */
export const filterNames: readonly string[] = [
  ...Object.keys(filterFields).filter((name) => name !== 'costPicodollars'),
  'cost',
  ...Object.keys(fieldAliases),
]

export type ReadFilters = { readonly conditions: readonly Condition[]; readonly text: string | undefined }

/** Reads `filters` of a request. Throws `InvalidRequest`. */
export function readFilters(value: JsonValue | undefined): ReadFilters {
  const { text, attributes, ...fields } = readObject(value, 'filters', [...filterNames, 'text', 'attributes'])
  const conditions = Object.entries(fields).flatMap(([name, condition]) =>
    condition === undefined ? [] : readCondition(fieldOf(name), condition, `filters.${name}`),
  )
  const sent = readObject(attributes, 'filters.attributes', Object.keys(attributeFields))
  for (const [name, condition] of Object.entries(sent)) {
    const field = attributeFields[name]
    if (field === undefined || condition === undefined) continue
    conditions.push(...readCondition(field, condition, `filters.attributes["${name}"]`))
  }
  if (conditions.length > maxConditions)
    throw invalid('filters', `must have at most ${maxConditions} conditions`)
  const values = conditions.reduce((sum, condition) => sum + countOf(condition), 0)
  if (values > maxValues) throw invalid('filters', `must have at most ${maxValues} values`)
  const searched = text === undefined || text === null ? '' : readText(text, 'filters.text', maxTextLength)
  return { conditions, text: searched === '' ? undefined : searched }
}

function fieldOf(name: string): FilterField {
  if (name === 'cost') return 'costPicodollars'
  return fieldAliases[name] ?? (name as FilterField)
}

function countOf(condition: Condition): number {
  return condition.kind === 'values' ? condition.values.length : 1
}

/** An empty list of values is no condition, as in the reference product. */
function readCondition(field: FilterField, value: JsonValue, place: string): Condition[] {
  const { type } = filterFields[field]
  if (isJsonObject(value)) {
    if (type === 'flag') throw invalid(place, 'must be true or false')
    return [type === 'text' ? readContains(field, value, place) : readRange(field, value, place)]
  }
  const sent = Array.isArray(value) ? value : [value]
  if (sent.length === 0) return []
  if (sent.length > maxValues) throw invalid(place, `must have at most ${maxValues} values`)
  const read = sent.map((item) => (item === null ? null : readScalar(field, item, place)))
  return [{ kind: 'values', field, values: [...new Set(read)] }]
}

function readContains(field: FilterField, value: JsonObject, place: string): Condition {
  checkMembers(value, place, ['contains'])
  const text = readText(value['contains'], `${place}.contains`, maxTextLength)
  return { kind: 'contains', field, text }
}

function readRange(field: FilterField, value: JsonObject, place: string): Condition {
  checkMembers(value, place, ['min', 'max'])
  const bound = (name: 'min' | 'max'): number | undefined => {
    const sent = value[name]
    if (sent === undefined || sent === null) return undefined
    return readNumber(field, sent, `${place}.${name}`)
  }
  return { kind: 'range', field, min: bound('min'), max: bound('max') }
}

function readScalar(field: FilterField, value: JsonValue, place: string): string | number {
  switch (filterFields[field].type) {
    case 'text':
      return readText(value, place, maxTextLength)
    case 'flag':
      if (typeof value !== 'boolean') throw invalid(place, 'must be true or false')
      return value ? 1 : 0
    case 'integer':
    case 'real':
      return readNumber(field, value, place)
  }
}

/** Largest value of columns of 32 bits. */
const maxSmallInteger = 2 ** 31 - 1
const smallIntegers: ReadonlySet<FilterField> = new Set(['status', 'attempts'])

function readNumber(field: FilterField, value: JsonValue, place: string): number {
  if (field === 'startedAt') return readTime(value, place) ?? 0
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(place, 'must be a number')
  if (field === 'costPicodollars') return cost(value, place)
  if (filterFields[field].type === 'real') return value
  const max = smallIntegers.has(field) ? maxSmallInteger : Number.MAX_SAFE_INTEGER
  if (!Number.isInteger(value) || value < 0 || value > max)
    throw invalid(place, `must be an integer from 0 to ${max}`)
  return value
}

function cost(dollars: number, place: string): number {
  const picodollars = Math.round(dollars * picodollarsPerDollar)
  if (!Number.isSafeInteger(picodollars)) throw invalid(place, 'must be an amount below 9000 US dollars')
  return picodollars
}
