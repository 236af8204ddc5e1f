import { describe, expect, it } from 'vitest'
import { mergeInitializeResults } from './initialize-result.ts'

const introduce = (target: string, result: Record<string, unknown>) => ({
  target,
  result: JSON.parse(JSON.stringify(result)),
})

describe('the introduction of several targets', () => {
  it('is as old as the oldest of them', () => {
    const versions = ['2025-11-25', '2024-11-05', '2025-06-18']
    const merged = mergeInitializeResults(
      versions.map((protocolVersion, index) => introduce(`t${index}`, { protocolVersion, capabilities: {} })),
      '1.2.3',
    )
    expect(merged).toMatchObject({
      protocolVersion: '2024-11-05',
      serverInfo: { name: 'tollgate', version: '1.2.3' },
    })
  })

  it('merges the capabilities of all targets, including unknown ones', () => {
    const merged = mergeInitializeResults(
      [
        introduce('a', {
          capabilities: { tools: {}, prompts: { listChanged: false }, experimental: { x: { y: 1 } } },
        }),
        introduce('b', {
          capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, logging: {} },
        }),
        introduce('c', { capabilities: { tools: { listChanged: false }, experimental: { z: {} } } }),
      ],
      '1',
    )
    expect(merged['capabilities']).toEqual({
      tools: { listChanged: true },
      prompts: { listChanged: true },
      experimental: { x: { y: 1 }, z: {} },
      logging: {},
    })
  })

  it('gives their instructions under their names', () => {
    const merged = mergeInitializeResults(
      [
        introduce('a', { instructions: 'Do.' }),
        introduce('b', {}),
        introduce('c', { instructions: 'Do not.' }),
      ],
      '1',
    )
    expect(merged['instructions']).toBe('[a]\nDo.\n\n[c]\nDo not.')
    expect(mergeInitializeResults([introduce('a', {})], '1')).not.toHaveProperty('instructions')
  })

  it('survives capabilities of any shape', () => {
    const odd = [introduce('a', { capabilities: [] }), introduce('b', { capabilities: { tools: true } })]
    expect(
      mergeInitializeResults([...odd, introduce('c', { capabilities: { tools: {} } })], '1')['capabilities'],
    ).toEqual({
      tools: {},
    })
    const poisoned = { target: 'd', result: JSON.parse('{"capabilities":{"__proto__":{"x":1}}}') }
    mergeInitializeResults([poisoned, poisoned], '1')
    expect({}).not.toHaveProperty('x')
  })
})
