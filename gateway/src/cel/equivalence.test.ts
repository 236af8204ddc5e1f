import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseCel } from './ast.ts'
import { compileCel } from './cel.ts'
import { hasProperties } from './closures/representation.ts'
import { compileWithLibrary } from './library.ts'

// Closures and library must return equal results, errors included, for every expression of the closures.

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
      fc.tuple(tie('text'), tie('path')).map(([key, value]) => `{string(${key}): ${value}}`),
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

const typedVariables = fc.record({
  n: fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(2 ** 53 - 1, 2 ** 62, -(2 ** 63))),
  d: fc.constantFrom(0.5, -1.5, 2.25),
  s: fc.constantFrom(...texts),
  b: fc.boolean(),
  ns: fc.array(fc.integer({ min: -2, max: 3 }), { maxLength: 4 }),
  ss: fc.array(fc.constantFrom(...texts), { maxLength: 4 }),
  o: fc.record({ n: fc.integer({ min: -2, max: 3 }), s: fc.constantFrom(...texts) }, { requiredKeys: [] }),
})

type Typed = { int: string; double: string; text: string; bool: string; ints: string; texts: string }

/**
 * Expressions whose parts have the right types, so that errors come only from missing keys, overflow and the
 * like.
 */
const typedExpressions = fc.letrec<Typed>((tie) => {
  const small = { depthSize: 'small' } as const
  const infix = (operators: readonly string[], left: fc.Arbitrary<string>, right = left) =>
    fc.tuple(left, fc.constantFrom(...operators), right).map(([a, operator, b]) => `(${a} ${operator} ${b})`)
  const call = (name: string, ...args: fc.Arbitrary<string>[]) =>
    fc.tuple(...args).map((values) => `${name}(${values.join(', ')})`)
  const overInts = (names: readonly string[], body: fc.Arbitrary<string>) =>
    fc
      .tuple(tie('ints'), fc.constantFrom(...names), body)
      .map(([list, name, inner]) => `${list}.${name}(i, ${inner.replaceAll('INT', 'i')})`)
  const overTexts = (names: readonly string[], body: fc.Arbitrary<string>) =>
    fc
      .tuple(tie('texts'), fc.constantFrom(...names), body)
      .map(([list, name, inner]) => `${list}.${name}(t, ${inner.replaceAll('TEXT', 't')})`)
  const choice = (value: fc.Arbitrary<string>) =>
    fc.tuple(tie('bool'), value, value).map(([test, a, b]) => `(${test} ? ${a} : ${b})`)
  const orders = ['==', '!=', '<', '<=', '>', '>=']
  return {
    int: fc.oneof(
      small,
      fc.constantFrom(
        'INT',
        'INT',
        'n',
        'o.n',
        '0',
        '1',
        '3',
        'o["n"]',
        'ns[0]',
        '9007199254740993',
        '{1: 4}[1]',
      ),
      infix(['+', '-', '*', '/', '%'], tie('int')),
      call('size', fc.oneof(tie('text'), tie('ints'), fc.constant('o'))),
      call('int', fc.oneof(tie('double'), tie('text'))),
      choice(tie('int')),
      tie('int').map((value) => `-${value}`),
    ),
    double: fc.oneof(
      small,
      fc.constantFrom('d', '1.0', '0.25', '3.0'),
      infix(['+', '-', '*', '/'], tie('double')),
      call('double', fc.oneof(tie('int'), tie('text'))),
    ),
    text: fc.oneof(
      small,
      fc.constantFrom('TEXT', 'TEXT', 's', 'o.s', 'ss[1]', '"a"', '"ab"', '"2"', '{"k": s}.k'),
      infix(['+'], tie('text')),
      call('string', fc.oneof(tie('int'), tie('double'), tie('bool'))),
      choice(tie('text')),
      fc
        .tuple(
          tie('text'),
          fc.constantFrom(
            'lowerAscii()',
            'trim()',
            'substring(1)',
            'stripPrefix("a")',
            'replace("a", "$&b", 1)',
          ),
        )
        .map(([text, method]) => `${text}.${method}`),
      tie('texts').map((list) => `${list}.join("-")`),
    ),
    bool: fc.oneof(
      small,
      fc.constantFrom('b', 'true', 'has(o.n)', 'has(o.s)', '"s" in o', 'ns == [1, 2]', 'o == {"n": 1}'),
      infix(['&&', '||'], tie('bool')),
      infix(orders, tie('int')),
      infix(orders, tie('double'), tie('int')),
      infix(orders, tie('text')),
      infix(['=='], tie('ints')),
      infix(['in'], tie('int'), tie('ints')),
      infix(['in'], tie('text'), tie('texts')),
      fc.tuple(tie('ints'), tie('int')).map(([list, item]) => `${list}.contains(${item})`),
      fc
        .tuple(tie('text'), fc.constantFrom('contains', 'startsWith', 'endsWith', 'matches'), tie('text'))
        .map(([text, name, part]) => `${text}.${name}(${part})`),
      overInts(['all', 'exists', 'exists_one'], tie('bool')),
      overTexts(['all', 'exists', 'exists_one'], tie('bool')),
      tie('bool').map((value) => `!${value}`),
    ),
    ints: fc.oneof(
      small,
      fc.constantFrom('ns', '[1, 2, 3]', '[INT, n]', '[]'),
      infix(['+'], tie('ints')),
      overInts(['map'], tie('int')),
      overInts(['filter'], tie('bool')),
      fc
        .tuple(tie('ints'), tie('bool'), tie('int'))
        .map(([list, test, step]) => `${list}.map(i, ${`${test}, ${step}`.replaceAll('INT', 'i')})`),
    ),
    texts: fc.oneof(
      small,
      fc.constantFrom('ss', '["a", "ab"]', 'o.map(key, key)', '[s, TEXT]'),
      overTexts(['map'], tie('text')),
      overTexts(['filter'], tie('bool')),
      tie('text').map((text) => `${text}.split("b")`),
    ),
  }
})

const runs = Number(process.env['CEL_RUNS'] ?? 1000)

describe('closures and library', () => {
  it('agree on expressions of any shape', () => {
    const roots = new Set(['v', 'w', 'm', 'unset'])
    const source = expressions.any.map((template) => template.replaceAll('LOCAL', 'v'))
    fc.assert(
      fc.property(source, variables, (expression, given) => {
        compareEngines(expression, { roots, given })
      }),
      { numRuns: runs },
    )
  })

  it('agree on expressions whose types fit', () => {
    const roots = new Set(['n', 'd', 's', 'b', 'ns', 'ss', 'o'])
    const any = fc.oneof(
      typedExpressions.bool,
      typedExpressions.int,
      typedExpressions.texts,
      typedExpressions.double,
    )
    const source = any.map((template) => template.replaceAll('INT', 'n').replaceAll('TEXT', 's'))
    let answered = 0
    fc.assert(
      fc.property(source, typedVariables, (expression, given) => {
        if (compareEngines(expression, { roots, given }) === 'value') answered += 1
      }),
      { numRuns: runs },
    )
    // Guards against a generator that only makes errors.
    expect(answered / runs).toBeGreaterThan(0.5)
  })
})

function compareEngines(
  source: string,
  { roots, given }: { roots: ReadonlySet<string>; given: object },
): 'value' | 'error' | 'refused' {
  const compiled = compileCel(source, roots)
  const parsed = parseCel(source)
  // Constant patterns that are invalid, and expressions nested too deeply, are issues of the configuration.
  if (compiled.kind === 'issue' || parsed.kind === 'issue' || !hasProperties(given)) return 'refused'
  expect(compiled.program.engine).toBe('closures')
  const library = compileWithLibrary(parsed.library, roots, {
    left: Number.POSITIVE_INFINITY,
    libraryStepWork: 0,
  })
  const expected = outcomeOf(() => library(given))
  expect(outcomeOf(() => compiled.program.evaluate(given))).toEqual(expected)
  return expected.kind
}

function outcomeOf(evaluate: () => unknown): { kind: 'value'; value: unknown } | { kind: 'error' } {
  try {
    return { kind: 'value', value: exact(evaluate()) }
  } catch {
    return { kind: 'error' }
  }
}

/**
 * Converts large integers to bigints: objects of variables contain numbers, copies of the library bigints.
 */
function exact(value: unknown): unknown {
  if (typeof value === 'number' && Number.isInteger(value)) {
    return Math.abs(value) < 2 ** 63 ? BigInt(value) : value
  }
  if (Array.isArray(value)) return value.map(exact)
  if (!hasProperties(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, exact(entry)]))
}
