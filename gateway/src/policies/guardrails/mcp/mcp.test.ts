import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkMcpGuardrails } from './config.ts'
import { compilePhases, isMethodPattern } from './phases.ts'
import { textsIn } from './texts.ts'
import { decodeVerdict } from './wire.ts'

describe('phases of methods', () => {
  it.each([
    ['tools/call', 'full', 'full'],
    ['tools/list', 'request', 'off'],
    ['prompts/list', 'off', 'response'],
    ['resources/templates/list', 'off', 'response'],
    ['resources/read', 'off', 'off'],
  ])('of %s are those of the most specific key', (method, request, response) => {
    const checks = compilePhases({
      ...{ '*/list': 'Response', 'tools/*': 'request', 'tools/call': 'full', '*/read': 'off' },
    })
    expect(checks(method, 'request')).toBe(request !== 'off')
    expect(checks(method, 'response')).toBe(response !== 'off')
  })

  it.each([
    [{ 'tools/call': 'full' }, true],
    [{ 'tools/call': 'Full', '*': 'off' }, true],
    [{ 'tools/call': 'off', '*': 'full' }, false],
    [{ '*': 'full' }, true],
    [{ 'tools/call': 'full', 'tasks/*': 'off' }, false],
    [{ 'tasks/result': 'response', 'tasks/get': 'response' }, true],
    [{ 'tools/list': 'full' }, false],
  ])(
    '%j of results of tasks are those of tools/call unless they have their own key',
    (methods, isChecked) => {
      for (const method of ['tasks/result', 'tasks/get'])
        expect(compilePhases(methods)(method, 'response')).toBe(isChecked)
    },
  )

  it.each([
    ['tools/call', true],
    ['*', true],
    ['a/*', true],
    ['*/b', true],
    ['**', false],
    ['a*b', false],
    ['', false],
  ])('with the key %j are valid: %s', (pattern, isValid) => {
    expect(isMethodPattern(pattern)).toBe(isValid)
  })
})

it('reports unknown backends, keys and variables', () => {
  const found: string[] = []
  checkMcpGuardrails(
    {
      processors: [{ backend: '/none', methods: { 'a*b': 'request' }, metadata: { x: 'llm.model' } }],
      request: [{ regex: { rules: [{ pattern: '(' }] } }],
    },
    [],
    (path) => found.push(path.join('.')),
  )
  expect(found.toSorted()).toEqual([
    'processors.0.backend',
    'processors.0.metadata.x',
    'processors.0.methods.a*b',
    'request.0.regex.rules.0.pattern',
  ])
})

describe('texts of messages', () => {
  it('are all strings of arguments, and of results those for models', () => {
    const read = (text: string, part: 'params' | 'result') =>
      textsIn(text, part)?.map(({ content }) => content)
    expect(read('{"name":"x","arguments":{"a":["1",{"type":"2"}],"b":3}}', 'params')).toEqual(['1', '2'])
    expect(
      read(
        '{"_meta":{"x":"-"},"content":[{"type":"text","text":"1"},{"type":"image","data":"-"},{"type":"resource","resource":{"uri":"2","blob":"-","text":"3"}},{"type":"new","words":"4"}],"structuredContent":{"data":"5"}}',
        'result',
      ),
    ).toEqual(['1', '2', '3', '4', '5'])
  })

  it('are not readable in ambiguous or huge objects', () => {
    expect(textsIn('{"a":1,"a":2}', 'result')).toBeUndefined()
    const many = JSON.stringify({ content: Array.from({ length: 10_002 }, () => 'x') })
    expect(textsIn(many, 'result')).toBeUndefined()
  })
})

it('decodes any bytes to a decision, or throws', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      try {
        expect(['pass', 'mutated', 'error']).toContain(decodeVerdict(bytes).kind)
      } catch (error) {
        expect(error instanceof RangeError || error instanceof TypeError).toBe(true)
      }
    }),
  )
})
