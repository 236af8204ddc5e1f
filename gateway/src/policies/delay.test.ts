import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { createCancellation } from '../lib/cancellation.ts'
import { checkDelay, compileDelay } from './delay.ts'

const variables = new Set(['request'])

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

describe('a delay', () => {
  it.each([
    ['1500ms', 1_500],
    ['duration("1500ms")', 1_500],
    ['request.path == "/v1/chat/completions" ? 250 : 0', 250],
    ['0.5 + 0.5', 1],
  ])('of %s waits %d ms', async (duration, expected) => {
    let isOver = false
    const outcome = compileDelay({ duration }, variables).onRequest?.(fixtureExchange())
    const waiting = Promise.resolve(outcome).then(() => {
      isOver = true
    })
    await vi.advanceTimersByTimeAsync(expected - 1)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await waiting
    expect(isOver).toBe(true)
  })

  it.each(['0s', '0', '-5', 'request.headers["none"]', '"text"', 'duration("-1s")'])(
    'of %s does not wait',
    (duration) => {
      expect(compileDelay({ duration }, variables).onRequest?.(fixtureExchange())).toBeUndefined()
    },
  )

  it('ends if the client disconnects', async () => {
    const exchange = fixtureExchange()
    const cancellation = createCancellation()
    exchange.cancellation = cancellation
    const outcome = compileDelay({ duration: '1h' }, variables).onRequest?.(exchange)
    cancellation.cancel()
    await expect(outcome).rejects.toMatchObject({ code: 'request_aborted' })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('requires a duration or a valid expression', () => {
    const found: string[] = []
    checkDelay({ duration: 'nothing' }, variables, (path) => found.push(path.join('.')))
    checkDelay({ duration: '2s' }, variables, (path) => found.push(path.join('.')))
    expect(found).toEqual(['duration'])
  })
})
