import { cel, type Infer, list, map, name, object, optional } from '../../../schema/dsl.ts'
import { orConditional } from './conditional.ts'

const maxHeaders = 16

const headerValue = object(
  {
    name: name({ doc: 'Name of the header.', example: 'x-user' }, { max: 256 }),
    value: cel({ doc: 'Expression of the value.', example: 'jwt.sub' }),
  },
  { doc: 'A header.' },
)

/** Schema of header values by expressions. */
export function headerValues(doc: string) {
  return optional(list(headerValue, { doc }, { min: 1, max: maxHeaders }))
}

function changes(doc: string, pseudoHeaders: string) {
  return object(
    {
      set: headerValues(`Values that replace those of headers, or of ${pseudoHeaders}.`),
      add: headerValues('Values to append to headers.'),
      remove: optional(
        list(
          name({ doc: 'Name of a header.' }, { max: 256 }),
          { doc: 'Headers to remove.' },
          { min: 1, max: maxHeaders },
        ),
      ),
      body: optional(
        cel({
          doc: 'Expression of the body: text and bytes as they are, other values as JSON. The body is empty if the evaluation fails.',
          example: '{"query": request.headers["x-query"]}',
        }),
      ),
      metadata: optional(
        map(cel({ doc: 'Expression of the value.' }), {
          doc: 'Values for later expressions, as `metadata.<name>`; evaluated first.',
          example: { tier: 'default(jwt.tier, "free")' },
        }),
      ),
    },
    { doc },
  )
}

const transformation = object(
  {
    request: optional(
      changes(
        'Changes of the forwarded request.',
        'the pseudo-headers `:method`, `:path`, `:authority` and `:scheme`',
      ),
    ),
    response: optional(changes('Changes of the response.', 'the pseudo-header `:status`')),
  },
  { doc: 'Changes of requests and responses.' },
)

/** `traffic.transformation`. */
export const transformationSchema = orConditional(transformation, {
  doc: 'Changes requests and responses by CEL expressions, in the order `metadata`, `add`, `set`, `remove`, `body`. A header whose expression fails is removed.',
})

export type Transformation = Infer<typeof transformation>
export type Changes = NonNullable<Transformation['request' | 'response']>
export type HeaderValue = Infer<typeof headerValue>
