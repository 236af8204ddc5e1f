import type { Refusal } from '../../../pipeline/errors.ts'
import type { ObjectEndpoint } from '../batches/object-path.ts'
import { invalidField } from '../request/body-checks.ts'
import type { OwnedQuery } from './owned-objects.ts'

/** A requested page. `isReversed`: the objects are in the other order than they are found. */
export type ListQuery = {
  readonly kind: 'query'
  readonly query: OwnedQuery
  readonly isReversed: boolean
  /** Parameter with the cursor. */
  readonly cursorParameter: string
}

/** Each object of a page is a request to its provider. */
const defaultLimit = 20
const mostLimit = 100

/** Reads the query of a list, which is empty or begins with a question mark. */
export function readListQuery(
  endpoint: ObjectEndpoint,
  query: string,
): ListQuery | { readonly kind: 'refused'; readonly refusal: Refusal } {
  const values = new URLSearchParams(query)
  const names = parameters[endpoint]
  for (const name of values.keys()) {
    if (!names.has(name)) return refused(name, `${name} is not supported in lists of the gateway`)
    if (values.getAll(name).length > 1) return refused(name, `${name} must occur once`)
  }
  const limit = values.get('limit') ?? String(defaultLimit)
  if (!/^[1-9]\d{0,4}$/.test(limit)) return refused('limit', 'limit must be a positive integer')
  const order = values.get('order') ?? 'desc'
  if (order !== 'desc' && order !== 'asc') return refused('order', 'order must be asc or desc')
  const cursors = ['after', 'after_id', 'page', 'before_id'].filter((name) => values.has(name))
  const [cursorParameter = 'after'] = cursors
  if (cursors.length > 1) return refused(cursorParameter, `${cursors.join(' and ')} exclude each other`)
  const isReversed = cursorParameter === 'before_id'
  return {
    kind: 'query',
    isReversed,
    cursorParameter,
    query: {
      purpose: values.get('purpose') ?? undefined,
      cursor: values.get(cursorParameter) ?? undefined,
      order: (order === 'desc') === isReversed ? 'oldest first' : 'newest first',
      limit: Math.min(Number(limit), mostLimit),
    },
  }
}

function refused(name: string, message: string) {
  return { kind: 'refused', refusal: invalidField(name.slice(0, 40), message.slice(0, 200)) } as const
}

const parameters: Readonly<Record<ObjectEndpoint, ReadonlySet<string>>> = {
  files: new Set(['after', 'limit', 'order', 'purpose']),
  batches: new Set(['after', 'limit']),
  uploads: new Set(),
  message_batches: new Set(['after_id', 'before_id', 'limit']),
  anthropic_files: new Set(['after_id', 'before_id', 'page', 'limit', 'beta']),
}
