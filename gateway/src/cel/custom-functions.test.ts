import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMsOf, expectBelow } from '../../test/support/time-bound.ts'
import { compileCel } from './cel.ts'
import { checkCustomFunctions } from './check-custom-functions.ts'
import { parseCustomFunctions, withCustomFunctions } from './custom-functions.ts'
import { CelEvaluationError } from './failure.ts'

const roots = new Set(['request', 'request.body', 'jwt'])
const variables = {
  request: { method: 'GET', headers: {} },
  jwt: { sub: 'ada' },
  body: Buffer.from('{"a":1}'),
}

const definitions = `
# Comment with a } brace
hi() { "hi" }
add(a, b) { a + b }
this.mix(a, rest...) { this + a + rest[0] + rest[1] }
isGet() { request.method == "GET" }
nested() { isGet() && add(1, 2) == 3 }
braces() { {"end": "}", 'x': '{'}["end"] }
field(name) {
  json(request.body)[name]
}
`

function complete(source: string, text: string = definitions): string {
  const parsed = parseCustomFunctions(text)
  if (parsed.kind === 'issue') throw new Error(parsed.message)
  return withCustomFunctions(source, parsed.functions)
}

function compile(source: string, text: string = definitions) {
  const compiled = compileCel(complete(source, text), roots)
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  return compiled.program
}

function issueOf(text: string): string | undefined {
  const found: string[] = []
  checkCustomFunctions(text, roots, (message) => found.push(message))
  return found[0]
}

describe('custom functions', () => {
  it.each<[string, unknown]>([
    ['hi() + "!"', 'hi!'],
    ['add(add(1, 2), add(3, 4))', 10],
    ['"a".mix("b", "c", "d")', 'abcd'],
    ['nested()', true],
    ['braces()', '}'],
    ['field("a")', 1],
    ['[1, 2].map(a, add(a, 10))', [11, 12]],
    ['[1, 2].map(x, [3].map(a, add(x, a)))', [[4], [5]]],
    ['add("hi(", jwt.sub)', 'hi(ada'],
  ])('%s', (source, expected) => {
    expect(compile(source).evaluate(variables)).toEqual(expected)
  })

  it('are valid', () => {
    expect(issueOf(definitions)).toBeUndefined()
    expect(issueOf('')).toBeUndefined()
  })

  it('count as references of the expression that calls them', () => {
    expect([compile('field("a")').readsBody, compile('nested()').readsBody]).toEqual([true, false])
    expect(compile('nested()').roots).toEqual(new Set(['request']))
  })

  it('see their parameters and the variables, not the names of macros around a call', () => {
    expect(() => compile('[1].map(x, leak())', 'leak() { x }')).toThrow(
      'in function leak: unknown variable "x"',
    )
  })

  it('are checked with the variables of the place of a call', () => {
    const compiled = compileCel(complete('1 == 1 && isGet()'), new Set(['jwt']))
    expect(compiled).toMatchObject({
      message: 'in function isGet: unknown variable "request"; known here: jwt',
      column: 11,
    })
  })

  it('leave expressions without them unchanged, and are added once', () => {
    expect(complete('jwt.sub == "a"')).toBe('jwt.sub == "a"')
    expect(complete(complete('nested()'))).toBe(complete('nested()'))
  })

  it.each([
    ['f { true }', 'a function is name(a, b) { expression }'],
    ['f() true', 'a function is name(a, b) { expression }'],
    ['f() { true', 'the body of f must end with }'],
    ['1bad() { true }', 'a function is'],
    ['this() { this }', 'a function is'],
    ['f(1bad) { true }', '"1bad" is not a parameter'],
    ['f(this) { true }', '"this" is not a parameter'],
    ['f(a..., b) { true }', '"a..." is not a parameter'],
    ['f() { 1 }\nf(a) { a }', 'f is defined twice (line 2, column 1 of the functions)'],
    ['json(a) { a }', 'json is a function of CEL: rename it'],
    ['f(a) { a == 10 ? 100 : f(a + 1) }', 'function f must not call itself'],
    ['f(a) { g(a) }\ng(a) { f(a) }', 'must not call itself'],
    ['f() { 1 + }', 'function f: syntax error'],
    [
      'f() {\n  1 == 1 &&\n  nope\n}',
      'function f: unknown variable "nope"; known here: request, jwt (line 3, column 3',
    ],
    ['f() { g(1) }\ng() { 1 }', 'g() takes 0 arguments, not 1'],
    [`f() { "${'a'.repeat(70_000)}" }`, 'must have at most'],
  ])('%j is an error', (text, message) => {
    expect(issueOf(text)).toContain(message)
  })

  it('have a limit of size and depth, with others in place', () => {
    const doubling = [
      'f0() { [1] }',
      ...Array.from({ length: 30 }, (_, index) => `f${index + 1}() { f${index}() + f${index}() }`),
    ]
    expect(issueOf(doubling.join('\n'))).toContain('is larger than 10000 parts')
    const chain = [
      'g0() { 1 }',
      ...Array.from({ length: 200 }, (_, index) => `g${index + 1}() { -(-g${index}()) }`),
    ]
    expect(issueOf(chain.join('\n'))).toContain('nested more than')
  })

  it('cost work', async () => {
    const text = 'each(a) { a.map(x, a.map(y, x + y)) }'
    const list = Array.from({ length: 100_000 }, () => 0)
    const run = () => compile('each(jwt.list)', text).evaluate({ jwt: { list } })
    await expectBelow(500, () => cpuMsOf(() => expect(run).toThrow(CelEvaluationError)))
  })

  it('are read from any text without a failure', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom(
            'f',
            '(',
            ')',
            '{',
            '}',
            '"',
            "'",
            '\\',
            ',',
            ' ',
            '#',
            '\n',
            'this.',
            '...',
            'a',
          ),
        }),
        (text) => {
          issueOf(text)
          expect(['functions', 'issue']).toContain(parseCustomFunctions(text).kind)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})
