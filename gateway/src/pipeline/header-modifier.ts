import type { Headers } from '../net/headers.ts'
import { type Infer, list, map, name, object, optional, string } from '../schema/dsl.ts'

/** Changes of header fields: of requests that are forwarded, or of answers. */
export const headerModifierSchema = object(
  {
    add: optional(
      map(string({ doc: 'The value.' }), {
        doc: 'Values that are added to those the field has.',
        example: { 'x-served-by': 'tollgate' },
      }),
    ),
    set: optional(
      map(string({ doc: 'The value.' }), { doc: 'Values that take the place of those the field has.' }),
    ),
    remove: optional(list(name({ doc: 'Name of a field.' }), { doc: 'Fields that are taken away.' })),
  },
  { doc: 'Changes of header fields: first `set`, then `add`, then `remove`.' },
)

export type HeaderModifierConfig = Infer<typeof headerModifierSchema>

type Report = (path: (string | number)[], message: string) => void

/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** RFC 9110 section 5.5, without what is not ASCII. */
const value = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$|^$/

/** They describe the connection or the body, and are made anew. */
const derived: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Reports fields that cannot be sent or are not for a configuration to say. Values are not repeated: they may be secrets. */
export function checkHeaderModifier(config: HeaderModifierConfig, report: Report): void {
  for (const key of ['add', 'set'] as const) {
    for (const [field, text] of Object.entries(config[key] ?? {})) {
      checkName(field, (message) => report([key, field], message))
      if (!value.test(text)) {
        report([key, field], 'the value must be printable ASCII without blanks at its ends')
      }
    }
  }
  for (const [index, field] of (config.remove ?? []).entries()) {
    checkName(field, (message) => report(['remove', index], message))
  }
}

function checkName(field: string, report: (message: string) => void): void {
  if (!token.test(field)) report(`"${field}" is no name of a header field`)
  else if (derived.has(field.toLowerCase())) report(`${field} is made anew for each message`)
}

/** Compiles the changes to a function that makes them in place. */
export function compileHeaderModifier({ add = {}, set = {}, remove = [] }: HeaderModifierConfig) {
  const sets = Object.entries(set).map(([field, text]) => [field.toLowerCase(), text] as const)
  const adds = Object.entries(add).map(([field, text]) => [field.toLowerCase(), text] as const)
  const removes = remove.map((field) => field.toLowerCase())
  return (headers: Headers): void => {
    for (const [field, text] of sets) headers[field] = text
    for (const [field, text] of adds) {
      const present = headers[field]
      headers[field] = present === undefined ? text : [...[present].flat(), text]
    }
    for (const field of removes) delete headers[field]
  }
}
