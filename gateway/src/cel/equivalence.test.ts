import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileCel } from './compile.ts'
import { compileWithLibrary } from './library.ts'
import { parseCel } from './tree.ts'
import { hasProperties } from './values.ts'

// The closures must answer what the library answers, errors included, for every expression they cover.

const keys = ['a', 'b', 'c', 'constructor', '__proto__', 'x-y']
const texts = ['', 'a', 'b', 'ab', 'abc', 'é', '😀a', '12', '-7', '1.5', 'true', '^a', 'constructor']
const numbers = [0, 1, 2, -1, 7, 0.5, -2.5, 1e3, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 2 ** 62, 1e300]

const scalar = fc.oneof(
  fc.constantFrom(...texts),
  fc.constantFrom(...numbers),
  fc.integer({ min: -5, max: 5 }),
  fc.boolean(),
  fc.constant(null),
)

const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('json'), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...keys), tie('json')), { maxLength: 4 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}))

const variables = fc.record({
  v: json,
  w: json,
  m: fc.record(
    { a: json, b: fc.constantFrom(...texts), c: fc.array(scalar, { maxLength: 4 }) },
    { requiredKeys: [] },
  ),
  unset: fc.constant(undefined),
})

const quoted = (text: string) => JSON.stringify(text)

type Tied = { any: string; bool: string; number: string; text: string; list: string; path: string }

/** Typed often enough that much of it has a value, and mixed often enough that much of it has none. */
const expressions = fc.letrec<Tied>((tie) => {
  const local = fc.constantFrom('x', 'y')
  const pair = (operators: readonly string[], operand: fc.Arbitrary<string>) =>
    fc
      .tuple(operand, fc.constantFrom(...operators), operand)
      .map(([a, operator, b]) => `(${a} ${operator} ${b})`)
  const macro = (names: readonly string[], body: fc.Arbitrary<string>) =>
    fc
      .tuple(tie('list'), fc.constantFrom(...names), local, body)
      .map(([list, name, x, inner]) => `${list}.${name}(${x}, ${inner.replaceAll('LOCAL', x)})`)
  return {
    any: fc.oneof(
      { depthSize: 'small' },
      tie('path'),
      tie('number'),
      tie('text'),
      tie('bool'),
      tie('list'),
      fc.constantFrom('null', 'LOCAL', 'LOCAL.a', 'unset'),
      fc.tuple(tie('text'), tie('path')).map(([key, value]) => `{${key}: ${value}}`),
    ),
    path: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('v', 'w', 'm', 'm.a', 'm.b', 'm.c', 'v.a', 'v.constructor', 'unset.a', 'LOCAL'),
      fc.tuple(tie('path'), fc.constantFrom('a', 'b', 'constructor')).map(([path, key]) => `${path}.${key}`),
      fc.tuple(tie('path'), fc.constantFrom(...keys)).map(([path, key]) => `${path}[${quoted(key)}]`),
      fc.tuple(tie('path'), fc.integer({ min: -1, max: 3 })).map(([path, index]) => `${path}[${index}]`),
      fc.tuple(tie('bool'), tie('path'), tie('path')).map(([test, a, b]) => `(${test} ? ${a} : ${b})`),
    ),
    number: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(
        '0',
        '1',
        '2',
        '-3',
        '1.0',
        '0.5',
        '9223372036854775807',
        '9007199254740992',
        '4611686018427387904',
      ),
      tie('path'),
      pair(['+', '-', '*', '/', '%'], tie('number')),
      fc
        .tuple(fc.constantFrom('size', 'int', 'double'), tie('any'))
        .map(([name, value]) => `${name}(${value})`),
      tie('number').map((value) => `(-${value})`),
    ),
    text: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(...texts).map(quoted),
      tie('path'),
      pair(['+'], tie('text')),
      tie('any').map((value) => `string(${value})`),
    ),
    list: fc.oneof(
      { depthSize: 'small' },
      tie('path'),
      fc.array(tie('any'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
      macro(['map'], tie('any')),
      macro(['filter'], tie('bool')),
      pair(['+'], tie('list')),
      fc
        .tuple(tie('list'), local, tie('bool'), tie('any'))
        .map(
          ([list, x, test, step]) =>
            `${list}.map(${x}, ${test.replaceAll('LOCAL', x)}, ${step.replaceAll('LOCAL', x)})`,
        ),
    ),
    bool: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('true', 'false'),
      tie('path'),
      pair(['&&', '||'], tie('bool')),
      pair(['==', '!=', '<', '<=', '>', '>='], tie('number')),
      pair(['==', '!=', '<', '<=', '>', '>='], tie('text')),
      pair(['==', '!='], tie('any')),
      fc.tuple(tie('any'), tie('list')).map(([item, list]) => `(${item} in ${list})`),
      fc
        .tuple(tie('path'), fc.constantFrom('a', 'b', 'constructor'))
        .map(([path, key]) => `has(${path}.${key})`),
      fc
        .tuple(tie('text'), fc.constantFrom('contains', 'startsWith', 'endsWith', 'matches'), tie('text'))
        .map(([text, name, part]) => `${text}.${name}(${part})`),
      macro(['all', 'exists', 'exists_one'], tie('bool')),
      tie('bool').map((value) => `!${value}`),
      tie('any').map((value) => `bool(${value})`),
    ),
  }
})

/** The library lets an index be anything that JavaScript's arrays take; CEL wants a number that is an integer. */
const laxIndexes = /\[(true|false)\]/

describe('closures and library', () => {
  const roots = new Set(['v', 'w', 'm', 'unset'])

  it('agree on every expression the closures cover', () => {
    let answered = 0
    let compared = 0
    fc.assert(
      fc.property(expressions.any, variables, (template, given) => {
        const source = template.replaceAll('LOCAL', 'v')
        const compiled = compileCel(source, roots)
        const parsed = parseCel(source)
        fc.pre(compiled.kind === 'program' && parsed.kind === 'tree' && !laxIndexes.test(source))
        if (compiled.kind !== 'program' || parsed.kind !== 'tree') return
        expect(compiled.program.engine).toBe('closures')
        const library = compileWithLibrary(parsed.library, roots, { left: Number.POSITIVE_INFINITY })
        const expected = outcomeOf(() => library(given))
        compared += 1
        if (expected.kind === 'value') answered += 1
        expect(outcomeOf(() => compiled.program.evaluate(given))).toEqual(expected)
      }),
      { numRuns: Number(process.env['CEL_RUNS'] ?? 1500) },
    )
    // Guards against a generator that only makes errors.
    expect(answered / compared).toBeGreaterThan(0.2)
  })
})

function outcomeOf(evaluate: () => unknown): { kind: 'value'; value: unknown } | { kind: 'error' } {
  try {
    return { kind: 'value', value: exact(evaluate()) }
  } catch {
    return { kind: 'error' }
  }
}

/** Objects that come straight from a variable keep their large numbers; the library's copies hold bigints. */
function exact(value: unknown): unknown {
  if (typeof value === 'number' && Number.isInteger(value)) {
    return Math.abs(value) < 2 ** 63 ? BigInt(value) : value
  }
  if (Array.isArray(value)) return value.map(exact)
  if (!hasProperties(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, exact(entry)]))
}
