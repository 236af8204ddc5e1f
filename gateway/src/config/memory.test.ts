import { describe, expect, it } from 'vitest'
import { createCompileMemory } from './memory.ts'

describe('createCompileMemory', () => {
  it('computes once per node and purpose, undefined results included', () => {
    const { memo } = createCompileMemory()
    const node = {}
    let calls = 0
    const count = () => {
      calls += 1
      return undefined
    }
    memo(node, 'a', count)
    memo(node, 'a', count)
    memo(node, 'b', count)
    memo({}, 'a', count)
    expect(calls).toBe(3)
  })

  it('keeps state under its name while somebody holds it', () => {
    const { keep } = createCompileMemory()
    const bucket = keep('limit', () => ({ level: 3 }))
    expect(keep('limit', () => ({ level: 9 }))).toBe(bucket)
    expect(keep('other', () => ({ level: 9 })).level).toBe(9)
  })
})
