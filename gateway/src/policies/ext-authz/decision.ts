import type { JsonObject } from '../../lib/json/json.ts'
import {
  appendHeader,
  isDerivedHeader,
  isEditableHeader,
  isHeaderValue,
} from '../../net/http/header-edits.ts'
import type { Headers } from '../../net/http/headers.ts'
import { parseQuery } from '../../pipeline/routing/query-parameters.ts'

/** Change of one header field, as in Envoy's `HeaderValueOption`. */
export type FieldEdit =
  | {
      readonly kind: 'append' | 'add-if-absent' | 'set' | 'set-if-present'
      readonly name: string
      readonly value: string
    }
  | { readonly kind: 'remove'; readonly name: string }

export type QueryEdits = {
  readonly set: readonly (readonly [name: string, value: string])[]
  readonly remove: readonly string[]
}

/** Reply with which the service refuses a request. */
export type DeniedReply = { readonly status: number; readonly headers: Headers; readonly body: Buffer }

/** Decision of the service on a request. `metadata` are the values of `extAuthz` in expressions. */
export type Decision =
  | {
      readonly kind: 'allowed'
      /** Header fields and pseudo-headers of the forwarded request. */
      readonly request: readonly FieldEdit[]
      readonly query: QueryEdits | undefined
      readonly reply: readonly FieldEdit[]
      readonly metadata: JsonObject | undefined
    }
  | {
      readonly kind: 'denied'
      /** Undefined for the reply of the gateway. */
      readonly reply: DeniedReply | undefined
      readonly metadata: JsonObject | undefined
    }

/** Response of the service that is not a decision. Its text has no contents of the response. */
export class InvalidDecision extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'InvalidDecision'
  }
}

/** Total length of names and values in characters. Many clients and servers accept 16 KiB in total. */
const maxFieldCharacters = 16 * 1024

/**
 * Returns the edits without fields that the gateway generates, such as `content-length`. Throws
 * `InvalidDecision` for fields that are too long in total or cannot be sent: without them the upstream would
 * receive another identity than the service decided. `pseudo` permits pseudo-headers.
 */
export function checkedEdits(
  edits: readonly FieldEdit[],
  pseudo: ReadonlySet<string> = noPseudoHeaders,
): FieldEdit[] {
  const checked: FieldEdit[] = []
  let characters = 0
  for (const edit of edits) {
    const name = edit.name.toLowerCase()
    if (edit.kind === 'remove') {
      if (isEditableHeader(name)) checked.push({ kind: 'remove', name })
      continue
    }
    const value = edit.value.trim()
    characters += name.length + value.length
    if (characters > maxFieldCharacters) throw new InvalidDecision('the response has too many header fields')
    if (isDerivedHeader(name) && name !== 'host') continue
    if (name === 'host' && !pseudo.has(':authority')) continue
    const target = name === 'host' ? ':authority' : name
    if (!pseudo.has(target) && !isEditableHeader(target))
      throw new InvalidDecision('the response has an invalid header name')
    if (!isHeaderValue(value)) throw new InvalidDecision('the response has an invalid header value')
    checked.push({ kind: edit.kind, name: target, value })
  }
  return checked
}

const noPseudoHeaders: ReadonlySet<string> = new Set()

/** Applies checked edits without pseudo-headers in place. */
export function applyFieldEdits(headers: Headers, edits: readonly FieldEdit[]): void {
  for (const edit of edits) {
    const { name } = edit
    const isPresent = headers[name] !== undefined
    switch (edit.kind) {
      case 'remove':
        if (isPresent) delete headers[name]
        break
      case 'set':
        headers[name] = edit.value
        break
      case 'append':
        appendHeader(headers, name, edit.value)
        break
      case 'add-if-absent':
        if (!isPresent) headers[name] = edit.value
        break
      case 'set-if-present':
        if (isPresent) headers[name] = edit.value
        break
    }
  }
}

/** Statuses without a body (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304])

/** Builds the reply of a refusal. A status that is not final becomes 403. */
export function deniedReply(status: number, edits: readonly FieldEdit[], body: Buffer): DeniedReply {
  const final = status >= 200 && status <= 599 ? status : 403
  const headers: Headers = {}
  applyFieldEdits(headers, edits)
  const content = withoutBody.has(final) ? empty : body
  if (content.byteLength > 0) headers['content-type'] ??= 'text/plain; charset=utf-8'
  return { status: final, headers, body: content }
}

const empty = Buffer.alloc(0)

/** Returns the query with its question mark after the edits. Untouched parameters keep their text. */
export function editedQuery(query: string, { set, remove }: QueryEdits): string {
  const dropped = new Set([...remove, ...set.map(([name]) => name)])
  const kept = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !dropped.has(nameOf(pair)))
  const added = set.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  const all = [...kept, ...added].join('&')
  return all === '' ? '' : `?${all}`
}

function nameOf(pair: string): string {
  const [name = ''] = parseQuery(pair).keys()
  return name
}
