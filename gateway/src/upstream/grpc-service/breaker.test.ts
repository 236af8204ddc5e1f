import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import { createBreaker } from './breaker.ts'

function clockOf(time: { ms: number }) {
  return { now: () => time.ms, monotonic: () => time.ms }
}

function breakerAt(time: { ms: number }) {
  return createBreaker(createLocalMemory(), 'breaker', clockOf(time))
}

it('opens after five failures in a row and admits one call a second until an answer', () => {
  const time = { ms: 0 }
  const breaker = breakerAt(time)
  for (let call = 0; call < 5; call++) {
    expect(breaker.admits()).toBe(true)
    breaker.failed()
  }
  expect(breaker.admits()).toBe(false)
  time.ms = 1_000
  expect([breaker.admits(), breaker.admits()]).toEqual([true, false])
  breaker.succeeded()
  expect([breaker.admits(), breaker.admits()]).toEqual([true, true])
})

it('never admits more than one call a second behind five failures, nor refuses behind an answer', () => {
  const step = fc.record({ afterMs: fc.nat(400), answered: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const time = { ms: 0 }
      const breaker = breakerAt(time)
      let failures = 0
      let lastCall = Number.NEGATIVE_INFINITY
      for (const { afterMs, answered } of steps) {
        time.ms += afterMs
        const admitted = breaker.admits()
        expect(admitted).toBe(failures < 5 || time.ms - lastCall >= 1_000)
        if (!admitted) continue
        lastCall = time.ms
        if (answered) breaker.succeeded()
        else breaker.failed()
        failures = answered ? 0 : failures + 1
      }
    }),
  )
})

it('counts the calls of all data planes', () => {
  const time = { ms: 0 }
  const [one, other] = createPlaneMemories(2).map((memory) => createBreaker(memory, 'breaker', clockOf(time)))
  for (let call = 0; call < 3; call++) one?.failed()
  for (let call = 0; call < 2; call++) other?.failed()
  expect([one?.admits(), other?.admits()]).toEqual([false, false])
  time.ms = 1_000
  expect([other?.admits(), one?.admits()]).toEqual([true, false])
  other?.succeeded()
  expect([one?.admits(), one?.admits()]).toEqual([true, true])
})
