import { describe, expect, it } from 'vitest'
import { createCancellation } from './cancellation.ts'

describe('createCancellation', () => {
  it('tells every listener once', () => {
    const calls: string[] = []
    const source = createCancellation()
    source.onCancel(() => calls.push('first'))
    source.onCancel(() => calls.push('second'))
    source.cancel()
    source.cancel()
    expect(calls).toEqual(['first', 'second'])
    expect(source.cancelled).toBe(true)
  })

  it('tells a late listener at once', () => {
    const source = createCancellation()
    source.cancel()
    let told = false
    source.onCancel(() => {
      told = true
    })
    expect(told).toBe(true)
  })
})
