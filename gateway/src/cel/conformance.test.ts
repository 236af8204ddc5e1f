import {
  type CelInput,
  celEnv,
  isCelError,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  parse,
  plan,
} from '@bufbuild/cel'
import {
  getConformanceSuite,
  type IncrementalTest,
  type IncrementalTestSuite,
} from '@bufbuild/cel-spec/testdata/tests.js'
import { describe, expect, it } from 'vitest'
import { compileCel } from './cel.ts'
import { hasProperties } from './closures/representation.ts'

type Test = IncrementalTest['original']
type Outcome = { kind: 'value'; value: unknown } | { kind: 'error' }

describe('the official conformance suite', () => {
  const counts = { passed: 0, closures: 0, library: 0, skipped: 0, libraryFailed: 0, better: 0, refused: 0 }
  const worse: string[] = []

  for (const { path, test } of allTests(getConformanceSuite(), '')) {
    const expected = expectation(test)
    const variables = plainBindings(test)
    if (expected === undefined || variables === undefined || test.container !== '' || test.checkOnly) {
      counts.skipped += 1
      continue
    }
    const libraryPasses = sameOutcome(evaluateRaw(test.expr, variables), expected)
    const compiled = compileCel(test.expr, new Set(Object.keys(variables)))
    const ours =
      compiled.kind === 'issue'
        ? ({ kind: 'error' } as const)
        : outcomeOf(() => compiled.program.evaluate(variables))
    const passes = sameOutcome(ours, expected)
    // The suite wants `x || true` to be true for unknown names; ours are errors of the configuration.
    const refused = compiled.kind === 'issue' && compiled.message.startsWith('unknown ')
    if (refused && !passes && libraryPasses) counts.refused += 1
    if (passes) counts.passed += 1
    if (passes && compiled.kind === 'program') counts[compiled.program.engine] += 1
    if (!libraryPasses) counts.libraryFailed += 1
    if (passes && !libraryPasses) counts.better += 1
    if (libraryPasses && !passes && !refused)
      worse.push(`${path}: ${test.expr} ${show(ours)} instead of ${show(expected)}`)
  }

  it('passes if the library passes', () => {
    expect(worse).toEqual([])
    expect(counts.refused).toBeLessThan(25)
  })

  it('is mostly supported, except protobuf messages, namespaces and unsigned variables', () => {
    expect(counts.passed).toBeGreaterThan(1300)
    expect(counts.skipped).toBeLessThan(700)
  })

  it('runs in closures for about half of the passing cases', () => {
    expect(counts.closures).toBeGreaterThan(600)
  })
})

function show(outcome: Outcome): string {
  return outcome.kind === 'error'
    ? 'error'
    : JSON.stringify(outcome.value, (_, value) => (typeof value === 'bigint' ? `${value}n` : value))
}

function* allTests(suite: IncrementalTestSuite, path: string): Generator<{ path: string; test: Test }> {
  for (const { original, name } of suite.tests) yield { path: `${path}/${name}`, test: original }
  for (const inner of suite.suites) yield* allTests(inner, `${path}/${inner.name}`)
}

function expectation({ resultMatcher }: Test): Outcome | undefined {
  if (resultMatcher.case === 'evalError') return { kind: 'error' }
  const value = resultMatcher.case === 'typedResult' ? resultMatcher.value.result : resultMatcher.value
  if (resultMatcher.case !== 'value' && resultMatcher.case !== 'typedResult') {
    return resultMatcher.case === undefined ? { kind: 'value', value: true } : undefined
  }
  try {
    return { kind: 'value', value: plainValue(value) }
  } catch {
    return undefined
  }
}

function plainBindings(test: Test): Record<string, unknown> | undefined {
  const variables: Record<string, unknown> = {}
  for (const [name, binding] of Object.entries(test.bindings)) {
    if (name.includes('.') || binding.kind.case !== 'value') return undefined
    try {
      variables[name] = plainValue(binding.kind.value, { asVariable: true })
    } catch {
      return undefined
    }
  }
  return variables
}

class NoPlainForm extends Error {}

/** As `CelProgram.evaluate` answers it; variables must also survive the way in, where 1.0 is an int. */
function plainValue(value: unknown, use: { asVariable?: boolean } = {}): unknown {
  if (!hasProperties(value) || !hasProperties(value['kind'])) throw new NoPlainForm()
  const { case: kind, value: content } = value['kind']
  switch (kind) {
    case 'nullValue':
      return null
    case 'boolValue':
    case 'stringValue':
    case 'bytesValue':
      return content
    case 'int64Value':
      return safe(content)
    case 'uint64Value':
      if (use.asVariable) throw new NoPlainForm()
      return safe(content)
    case 'doubleValue':
      if (use.asVariable && Number.isInteger(content)) throw new NoPlainForm()
      return content
    case 'typeValue':
      return content
    case 'listValue':
      return hasProperties(content) && Array.isArray(content['values'])
        ? content['values'].map((item) => plainValue(item, use))
        : undefined
    case 'mapValue':
      return hasProperties(content) && Array.isArray(content['entries'])
        ? plainEntries(content['entries'], use)
        : undefined
    default:
      throw new NoPlainForm()
  }
}

function plainEntries(
  entries: readonly { key: unknown; value: unknown }[],
  use: { asVariable?: boolean },
): object {
  return Object.fromEntries(
    entries.map(({ key, value }) => {
      const name = plainValue(key)
      if (use.asVariable && typeof name !== 'string') throw new NoPlainForm()
      return [String(name), plainValue(value, use)]
    }),
  )
}

function safe(value: unknown): unknown {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

function outcomeOf(evaluate: () => unknown): Outcome {
  try {
    return { kind: 'value', value: evaluate() }
  } catch {
    return { kind: 'error' }
  }
}

/** The library as it comes, without our corrections. */
function evaluateRaw(source: string, variables: Record<string, unknown>): Outcome {
  return outcomeOf(() => {
    const bindings = Object.fromEntries(
      Object.entries(variables).map(([name, value]) => [name, rawInput(value)]),
    )
    const result = plan(celEnv(), parse(source))(bindings)
    if (isCelError(result)) throw result
    return rawPlain(result)
  })
}

function rawInput(value: unknown): CelInput {
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
  if (Array.isArray(value)) return value.map(rawInput)
  if (value === null || value instanceof Uint8Array) return value
  if (hasProperties(value))
    return new Map(Object.entries(value).map(([key, entry]) => [key, rawInput(entry)]))
  if (
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    typeof value === 'bigint' ||
    typeof value === 'number'
  )
    return value
  throw new NoPlainForm()
}

function rawPlain(value: unknown): unknown {
  if (typeof value === 'bigint') return safe(value)
  if (isCelUint(value)) return safe(value.value)
  if (isCelType(value)) return value.name
  if (isCelList(value)) return Array.from(value, rawPlain)
  if (isCelMap(value))
    return Object.fromEntries(Array.from(value, ([key, entry]) => [String(rawPlain(key)), rawPlain(entry)]))
  return value
}

function sameOutcome(actual: Outcome, expected: Outcome): boolean {
  if (actual.kind === 'error' || expected.kind === 'error') return actual.kind === expected.kind
  return same(actual.value, expected.value)
}

function same(actual: unknown, expected: unknown): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((item, index) => same(actual[index], item))
    )
  }
  if (expected instanceof Uint8Array)
    return actual instanceof Uint8Array && Buffer.from(actual).equals(expected)
  if (!hasProperties(expected)) return Object.is(actual, expected) || actual === expected
  if (!hasProperties(actual) || Array.isArray(actual)) return false
  const keys = Object.keys(expected)
  return (
    keys.length === Object.keys(actual).length &&
    keys.every((key) => Object.hasOwn(actual, key) && same(actual[key], expected[key]))
  )
}
