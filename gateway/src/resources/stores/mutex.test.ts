import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMutex } from './mutex.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

const turns = () => createMutex({ now: () => Date.now(), monotonic: () => Date.now() })
const late = () => new Error('late')

it('runs one call at a time, in order, also after failures', async () => {
  const { run: take } = turns()
  const steps: string[] = []
  const run = (name: string) => async () => {
    steps.push(`${name} starts`)
    await Promise.resolve()
    steps.push(`${name} ends`)
    if (name === 'b') throw new Error('b fails')
    return name
  }
  const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((name) => take(1000, late, run(name))))
  expect(steps).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('rejects after the limit, and passes the remaining time to later calls', async () => {
  const { run: take } = turns()
  const first = Promise.withResolvers<void>()
  const running = take(1000, late, () => first.promise)
  const impatient = take(100, late, () => Promise.resolve('never'))
  const patient = take(1000, late, (leftMs) => Promise.resolve(leftMs))
  const refusal = expect(impatient).rejects.toThrow('late')
  await vi.advanceTimersByTimeAsync(400)
  await refusal
  first.resolve()
  await running
  expect(await patient).toBe(600)
  expect(await take(50, late, (leftMs) => Promise.resolve(leftMs))).toBe(50)
})

it('rejects all waiting calls, neither the running one nor later ones', async () => {
  const { run: take, rejectWaiting: refuseWaiting } = turns()
  const first = Promise.withResolvers<string>()
  const running = take(1000, late, () => first.promise)
  const waiting = Promise.allSettled([1, 2].map(() => take(1000, late, () => Promise.resolve('never'))))
  refuseWaiting(new Error('lost'))
  expect(await waiting).toMatchObject([{ reason: { message: 'lost' } }, { reason: { message: 'lost' } }])
  const later = take(1000, late, () => Promise.resolve('later'))
  first.resolve('first')
  expect(await Promise.all([running, later])).toEqual(['first', 'later'])
})
