import { isToken } from '../lib/http-token.ts'
import { type Headers, isHopByHop } from '../net/http/headers.ts'
import { type Infer, list, map, name, object, optional, string } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

const order = 'first `add`, then `set`, then `remove`.'

/** Changes of header fields, wherever there are some. `doc` says of what. */
export function headerModifierOf(doc: string) {
  return object(
    {
      add: optional(
        map(string({ doc: 'The value.' }), {
          doc: 'Values that are added to those the field has.',
          example: { 'x-team': 'search' },
        }),
      ),
      set: optional(
        map(string({ doc: 'The value.' }), { doc: 'Values that take the place of those the field has.' }),
      ),
      remove: optional(
        list(name({ doc: 'Name of a field.' }), { doc: 'Fields that are taken away.', example: ['x-debug'] }),
      ),
    },
    { doc: `${doc}: ${order}` },
  )
}

/** Changes of header fields: of requests that are forwarded, or of answers. */
export const headerModifierSchema = headerModifierOf('Changes of header fields')

export type HeaderModifierConfig = Infer<typeof headerModifierSchema>

/**
 * RFC 9110 section 5.5. What is beyond one byte cannot be sent, a line break would begin another field, and HTTP/2 has no
 * blanks at the ends.
 */
const value = /^[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$|^$/

/** They describe the body or how the message is sent, and are made anew, as those of the connection are. */
const derived: ReadonlySet<string> = new Set(['content-length', 'expect', 'host'])

/**
 * Reports fields that cannot be sent or are not for a configuration to say; `instead` has what to say of some of them.
 * Values are not repeated: they may be secrets.
 */
export function checkHeaderModifier(
  config: HeaderModifierConfig,
  report: ReportIssue,
  instead: ReadonlyMap<string, string> = nothingInstead,
): void {
  for (const key of ['add', 'set'] as const) {
    for (const [field, text] of Object.entries(config[key] ?? {})) {
      checkName(field, instead, (message) => report([key, field], message))
      if (!value.test(text)) {
        report(
          [key, field],
          'a header value holds no line breaks or control characters, nothing beyond Latin-1, and no blanks at its ends',
        )
      }
    }
  }
  for (const [index, field] of (config.remove ?? []).entries()) {
    checkName(field, instead, (message) => report(['remove', index], message))
  }
}

const nothingInstead: ReadonlyMap<string, string> = new Map()

function checkName(
  field: string,
  instead: ReadonlyMap<string, string>,
  report: (message: string) => void,
): void {
  const lower = field.toLowerCase()
  if (!isToken(field) || lower === '__proto__') report(`not a header name: "${field}"`)
  else if (derived.has(lower) || isHopByHop(lower))
    report(instead.get(lower) ?? `${lower} is made anew for each message`)
}

/** Compiles the changes to a function that makes them in place. */
export function compileHeaderModifier({ add = {}, set = {}, remove = [] }: HeaderModifierConfig) {
  const adds = Object.entries(add).map(lowerCase)
  const sets = Object.entries(set).map(lowerCase)
  const removes = remove.map((field) => field.toLowerCase())
  return (headers: Headers): void => {
    for (const [field, text] of adds) append(headers, field, text)
    for (const [field, text] of sets) headers[field] = text
    for (const field of removes) if (headers[field] !== undefined) delete headers[field]
  }
}

function lowerCase([field, text]: [string, string]): [string, string] {
  return [field.toLowerCase(), text]
}

/** A list of values is one field with commas (RFC 9110 section 5.3), but for those that may not be joined so. */
function append(headers: Headers, field: string, text: string): void {
  const present = Object.hasOwn(headers, field) ? headers[field] : undefined
  if (present === undefined) headers[field] = text
  else if (field === 'set-cookie' || typeof present === 'object') headers[field] = [present, text].flat()
  else headers[field] = `${present}${field === 'cookie' ? '; ' : ', '}${text}`
}
