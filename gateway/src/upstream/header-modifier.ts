import { isToken } from '../lib/http-token.ts'
import { appendHeader, isDerivedHeader, isHeaderValue } from '../net/http/header-edits.ts'
import type { Headers } from '../net/http/headers.ts'
import { type Infer, list, map, name, object, optional, string } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

const order = 'first `add`, then `set`, then `remove`.'

/** Schema of changes of header fields. `doc` names the message. */
export function headerModifierOf(doc: string) {
  return object(
    {
      add: optional(
        map(string({ doc: 'The value.' }), {
          doc: 'Values to append to the field.',
          example: { 'x-team': 'search' },
        }),
      ),
      set: optional(map(string({ doc: 'The value.' }), { doc: 'Values that replace those of the field.' })),
      remove: optional(
        list(name({ doc: 'Name of a field.' }), { doc: 'Fields to remove.', example: ['x-debug'] }),
      ),
    },
    { doc: `${doc}: ${order}` },
  )
}

/** Changes of header fields of forwarded requests or of responses. */
export const headerModifierSchema = headerModifierOf('Changes of header fields')

export type HeaderModifierConfig = Infer<typeof headerModifierSchema>

/**
 * Reports fields that are invalid or not configurable; `instead` has specific messages for some of them.
 * Messages omit values, because they may be secrets.
 */
export function checkHeaderModifier(
  config: HeaderModifierConfig,
  report: ReportIssue,
  instead: ReadonlyMap<string, string> = nothingInstead,
): void {
  for (const key of ['add', 'set'] as const) {
    for (const [field, text] of Object.entries(config[key] ?? {})) {
      checkName(field, instead, (message) => report([key, field], message))
      if (!isHeaderValue(text)) {
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
  else if (isDerivedHeader(lower)) report(instead.get(lower) ?? `${lower} is made anew for each message`)
}

/** Compiles the changes to a function that edits headers in place. */
export function compileHeaderModifier({ add = {}, set = {}, remove = [] }: HeaderModifierConfig) {
  const adds = Object.entries(add).map(lowerCase)
  const sets = Object.entries(set).map(lowerCase)
  const removes = remove.map((field) => field.toLowerCase())
  return (headers: Headers): void => {
    for (const [field, text] of adds) appendHeader(headers, field, text)
    for (const [field, text] of sets) headers[field] = text
    for (const field of removes) if (headers[field] !== undefined) delete headers[field]
  }
}

function lowerCase([field, text]: [string, string]): [string, string] {
  return [field.toLowerCase(), text]
}
