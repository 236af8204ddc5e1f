import { expect, it } from 'vitest'
import { fillTemplate, hasPlaceholder } from './template.ts'

it('placeholders are replaced by text, numbers and JSON', () => {
  const values = { port: 4000, host: 'a', keys: [{ key: 'k' }] }
  expect(fillTemplate('{{port}} {{ host }}:{{port}} {{keys}} {x} {{}}', values, 'a.yaml')).toBe(
    '4000 a:4000 [{"key":"k"}] {x} {{}}',
  )
})

it('a value that looks like a placeholder or a pattern is inserted as it is', () => {
  expect(fillTemplate('{{a}}', { a: '{{b}} $& $1' }, 'x')).toBe('{{b}} $& $1')
})

it.each(['prot', 'toString', '__proto__'])(
  'the unknown placeholder %s is refused with the known ones',
  (name) => {
    expect(() => fillTemplate(`port: {{${name}}}`, { port: 1, host: 'a' }, 'x/llm.yaml')).toThrow(
      `x/llm.yaml: {{${name}}} is not a value: use one of port, host`,
    )
  },
)

it('placeholders are found in any position, again and again', () => {
  expect(['{{a}}', 'x{{a}}', 'a', '{{a}}'].map(hasPlaceholder)).toEqual([true, true, false, true])
})
