import { describe, expect, it } from 'vitest'
import { createCancellation } from './cancellation.ts'

describe('createCancellation', () => {
  it('calls every listener once', () => {
    const calls: string[] = []
    const source = createCancellation()
    source.onCancel(() => calls.push('first'))
    source.onCancel(() => calls.push('second'))
    source.cancel()
    source.cancel()
    expect(calls).toEqual(['first', 'second'])
    expect(source.cancelled).toBe(true)
  })

  it('calls a late listener immediately', () => {
    const source = createCancellation()
    source.cancel()
    let told = false
    source.onCancel(() => {
      told = true
    })
    expect(told).toBe(true)
  })
})
