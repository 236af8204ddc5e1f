import { expect, it } from 'vitest'
import {
  anyOfShapes,
  duration,
  enumeration,
  exactlyOne,
  integer,
  list,
  map,
  object,
  optional,
  port,
  secret,
  string,
} from '../schema/dsl.ts'
import { renderConfigReference } from './config-reference.ts'

const target = exactlyOne(
  { host: string({ doc: 'Where it is.' }), backend: string({ doc: 'Its name.' }) },
  { wait: optional(duration({ doc: 'How long.', default: '5s', advanced: true })) },
  { doc: 'A target.' },
)

const schema = object(
  {
    port: optional(port({ doc: 'Listens here.', default: 4000, example: 8080 })),
    key: secret({ doc: 'The key | pipe.' }),
    mode: optional(enumeration(['a', 'b'], { doc: 'Mode.', default: 'what the server says' })),
    targets: list(target, { doc: 'Targets.' }),
    servers: optional(
      map(object({ weight: integer({ doc: 'W.' }, { min: 1, max: 9 }) }, { doc: 'A server.' }), {
        doc: 'Servers.',
      }),
    ),
    rule: anyOfShapes([string({ doc: '' }), object({ deny: string({ doc: 'D.' }) }, { doc: 'A rule.' })], {
      doc: 'Rule.',
    }),
    limit: anyOfShapes(
      [object({ a: string({ doc: '' }) }, { doc: '' }), object({ b: string({ doc: '' }) }, { doc: '' })],
      { doc: 'Limit.' },
    ),
  },
  { doc: 'Everything.' },
)

const text = renderConfigReference(schema)

it('renders a section for each object, with its path', () => {
  const headings = text.split('\n').filter((line) => line.startsWith('## '))
  expect(headings).toEqual([
    '## Top level',
    '## `targets[]`',
    '## `servers.<name>`',
    '## `rule`',
    '## `limit`: a',
    '## `limit`: b',
  ])
})

it.each([
  ['| `port` | port | `4000` | Listens here. Example: `8080`. |'],
  ['| `key` * | text |  | The key \\| pipe. **Secret.** |'],
  ['| `mode` | `a`, `b` | what the server says | Mode. |'],
  ['| `targets` * | list of object |  | Targets. |'],
  ['| `servers` | map of names to object |  | Servers. |'],
  ['| `weight` * | whole number from 1 to 9 |  | W. |'],
  ['| `rule` * | text or object |  | Rule. |'],
  ['Exactly one of `host`, `backend`.'],
])('has the line %s', (line) => {
  expect(text.split('\n')).toContain(line)
})

it('lists advanced fields last', () => {
  const own = text.slice(text.indexOf('## `targets[]`'), text.indexOf('## `servers'))
  const fields = [...own.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
  expect(fields).toEqual(['host', 'backend', 'wait'])
  expect(own).toContain('| `wait` | duration | `5s` | How long. *Advanced.* |')
})

it('describes an object once, with a reference from other paths', () => {
  const shared = object({ rule: string({ doc: 'R.' }) }, { doc: 'Rules.' })
  const place = (doc: string) =>
    object({ rules: optional(shared), many: list(shared, { doc: 'M.' }) }, { doc })
  const text = renderConfigReference(object({ one: place('O.'), two: place('T.') }, { doc: '' }))
  expect(text.match(/## `one.rules`/g)).toHaveLength(1)
  expect(text).not.toContain('## `two.rules`')
  expect(text).toContain('| `rules` | object |  | Rules. As `one.rules`. |')
  expect(text).toContain('| `many` * | list of object |  | M. As `one.rules`. |')
})
