import { type Headers, isHopByHop } from '../net/headers.ts'
import { forwardingOf } from '../pipeline/forwarding.ts'
import type { Policy } from '../pipeline/policy.ts'
import { type Infer, list, map, name, object, optional, string } from '../schema/dsl.ts'

function modifierSchema(of: string, doc: string) {
  return object(
    {
      add: optional(
        map(string({ doc: 'The value.' }), {
          doc: `Values added to ${of} headers, beside those that are there.`,
          example: { 'x-team': 'search' },
        }),
      ),
      set: optional(
        map(string({ doc: 'The value.' }), {
          doc: `Values of ${of} headers, in place of those that are there.`,
        }),
      ),
      remove: optional(
        list(name({ doc: 'Name of a header.' }), {
          doc: `Headers taken off the ${of}.`,
          example: ['x-debug'],
        }),
      ),
    },
    { doc },
  )
}

/** `requestHeaderModifier`: headers of what is forwarded. */
export const requestHeaderModifierSchema = modifierSchema(
  'request',
  'Changes headers before a request is forwarded: first adds, then sets, then removes. Expressions keep seeing what the client sent.',
)

/** `responseHeaderModifier`: headers of the answer. */
export const responseHeaderModifierSchema = modifierSchema(
  'response',
  'Changes headers of answers: first adds, then sets, then removes. Refusals by other policies stay as they are.',
)

export type HeaderModifierConfig = Infer<typeof requestHeaderModifierSchema>

type Report = (path: (string | number)[], message: string) => void

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** RFC 9110 section 5.5. What is beyond one byte cannot be sent, and a line break would begin another header. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Reports names and values that no header has, and headers that are not for a policy to change. */
export function checkHeaderModifier(
  config: HeaderModifierConfig,
  of: 'request' | 'response',
  report: Report,
) {
  for (const field of ['add', 'set'] as const) {
    for (const [header, value] of Object.entries(config[field] ?? {})) {
      checkName(header, of, (message) => report([field, header], message))
      if (!fieldValue.test(value)) {
        report(
          [field, header],
          'a header value holds no line breaks, control characters or characters beyond Latin-1',
        )
      }
    }
  }
  config.remove?.forEach((header, index) => {
    checkName(header, of, (message) => report(['remove', index], message))
  })
}

function checkName(header: string, of: 'request' | 'response', report: (message: string) => void) {
  const lower = header.toLowerCase()
  if (!token.test(header) || lower === '__proto__') return report(`not a header name: "${header}"`)
  if (of === 'request' && lower === 'host') {
    return report('the host is not changed as a header: use urlRewrite.authority')
  }
  if (lower === 'content-length') report('content-length follows from the body')
  if (isHopByHop(lower)) report(`"${lower}" belongs to one connection and is never forwarded`)
}

/** Notes the changes for whoever forwards the request, which the client's own stays. */
export function compileRequestHeaderModifier(config: HeaderModifierConfig): Policy {
  const edit = compileEdit(config)
  return {
    name: 'request headers',
    onRequest(exchange) {
      forwardingOf(exchange).headerEdits.push(edit)
      return undefined
    },
  }
}

/** Changes the headers of what the policies after it, or the backend, answer. */
export function compileResponseHeaderModifier(config: HeaderModifierConfig): Policy {
  const edit = compileEdit(config)
  return {
    name: 'response headers',
    onReply(_, reply) {
      edit(reply.headers)
      return reply
    },
  }
}

function compileEdit({ add = {}, set = {}, remove = [] }: HeaderModifierConfig): (headers: Headers) => void {
  const added = Object.entries(add).map(lowerCase)
  const values = Object.entries(set).map(lowerCase)
  const removed = remove.map((header) => header.toLowerCase())
  return (headers) => {
    for (const [header, value] of added) append(headers, header, value)
    for (const [header, value] of values) headers[header] = value
    for (const header of removed) if (headers[header] !== undefined) delete headers[header]
  }
}

function lowerCase([header, value]: [string, string]): [string, string] {
  return [header.toLowerCase(), value]
}

/** A list of values is one header with commas (RFC 9110 section 5.3), but for those that may not be joined so. */
function append(headers: Headers, header: string, value: string) {
  const present = Object.hasOwn(headers, header) ? headers[header] : undefined
  if (present === undefined) headers[header] = value
  else if (header === 'set-cookie' || typeof present === 'object') headers[header] = [present, value].flat()
  else headers[header] = `${present}${header === 'cookie' ? '; ' : ', '}${value}`
}
