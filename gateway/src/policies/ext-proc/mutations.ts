import { isToken } from '../../lib/http-token.ts'
import { type HeaderEdit, isEditableHeader, isHeaderValue } from '../../net/http/header-edits.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { HeaderMutation, HeaderOption } from './wire/messages.ts'

/** Edits of a mutation, and its pseudo-headers. */
export type MutationEdits =
  | {
      readonly kind: 'edits'
      readonly edits: readonly HeaderEdit[]
      readonly pseudo: readonly (readonly [name: string, value: string])[]
      /** Names of fields that a processor must not change. */
      readonly ignored: number
    }
  | { readonly kind: 'invalid'; readonly reason: string }

const none: MutationEdits = { kind: 'edits', edits: [], pseudo: [], ignored: 0 }

/** Limit of fields per mutation. */
const maxFields = 1_000

/**
 * Translates a mutation to edits of `headers`, which is not changed: removals first. Fields of the connection
 * and of the length are ignored, because the gateway derives them. Invalid names and values are errors.
 */
export function editsOf(mutation: HeaderMutation | undefined, headers: Headers): MutationEdits {
  if (mutation === undefined || mutation.set.length + mutation.remove.length === 0) return none
  if (mutation.set.length + mutation.remove.length > maxFields) return invalid('too many header fields')
  const edits: HeaderEdit[] = []
  const pseudo: [string, string][] = []
  const present = new Map<string, boolean>()
  let ignored = 0
  for (const removed of mutation.remove) {
    const name = removed.toLowerCase()
    if (!isEditableHeader(name)) ignored += 1
    else {
      edits.push({ kind: 'remove', name })
      present.set(name, false)
    }
  }
  for (const option of mutation.set) {
    const name = option.name.toLowerCase()
    if (name.startsWith(':')) pseudo.push([name, option.value])
    else if (!isToken(name)) return invalid('a header name is not valid')
    else if (!isHeaderValue(option.value)) return invalid(`the value of header ${name} is not valid`)
    else if (!isEditableHeader(name)) ignored += 1
    else addEdit(edits, name, option, present.get(name) ?? Object.hasOwn(headers, name), present)
  }
  return { kind: 'edits', edits, pseudo, ignored }
}

function addEdit(
  edits: HeaderEdit[],
  name: string,
  { value, action }: HeaderOption,
  isPresent: boolean,
  present: Map<string, boolean>,
): void {
  // Without a value, the protocol ignores the field.
  if (value === '') return
  if (action === 'addIfAbsent' && isPresent) return
  if (action === 'overwriteIfExists' && !isPresent) return
  edits.push({ kind: action === 'append' ? 'append' : 'set', name, value })
  present.set(name, true)
}

function invalid(reason: string): MutationEdits {
  return { kind: 'invalid', reason: `invalid header mutation of the processor: ${reason}` }
}
