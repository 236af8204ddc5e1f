import { describe, expect, it } from 'vitest'
import { type CelProgram, compileCel, tryEvaluate } from './cel.ts'
import { CelEvaluationError } from './failure.ts'
import { bodyOfResult, evaluateToWrite, jsonOfResult } from './results.ts'

const beyond = 'too many steps'

/** 61 KB whose expansion has 30 MB. */
const body = Buffer.from(JSON.stringify({ items: Array(500).fill(1), ctx: 'a'.repeat(60_000) }))

function compile(source: string): CelProgram {
  const compiled = compileCel(source, new Set(['request', 'request.body', 'list', 'items']))
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  return compiled.program
}

const expansion = compile('json(request.body).items.map(i, {"item": i, "ctx": json(request.body).ctx})')

describe('results of expressions', () => {
  it('are JSON with exact integers and base64 of bytes', () => {
    const value = compile('{"a": [1, 9007199254740993, 1.5, null], "b": b"abc"}').evaluate({})
    expect(jsonOfResult(value)).toBe('{"a":[1,9007199254740993,1.5,null],"b":"YWJj"}')
    expect(String(bodyOfResult(value))).toBe(jsonOfResult(value))
    expect(String(bodyOfResult('text'))).toBe('text')
  })

  it('fail in every format if shared objects expand beyond the work limit', () => {
    const variables = { request: { body } }
    expect(tryEvaluate(expansion, variables, bodyOfResult).kind).toBe('failed')
    expect(() => jsonOfResult(expansion.evaluate(variables))).toThrow(beyond)
    expect(() => evaluateToWrite(expansion, variables)).toThrow(beyond)
  })

  it('fail if they are nested too deeply', () => {
    let list: unknown[] = []
    for (let depth = 0; depth < 5_000; depth += 1) list = [list]
    const deep = compile('{"deep": list}')
    expect(() => evaluateToWrite(deep, { list })).toThrow(CelEvaluationError)
    expect(tryEvaluate(deep, { list }, jsonOfResult).kind).toBe('failed')
  })

  it('fail if copies of shared lists take too much work', () => {
    const source = 'items.map(i, list)'
    const variables = { items: Array(1_000).fill(0), list: Array(10_000).fill(0) }
    expect(() => compile(source).evaluate(variables)).toThrow(beyond)
  })
})
