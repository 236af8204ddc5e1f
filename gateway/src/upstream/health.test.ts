import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../test/fixtures/pipeline.ts'
import type { Memory } from '../lib/planes/memory.ts'
import { compileHealth } from './health.ts'

function healthOf(config: Parameters<typeof compileHealth>[0]) {
  const context = fixtureContext()
  const health = compileHealth(config, 'a', context)
  if (health === undefined) throw new Error('no health')
  const respond = (status: number, headers = {}) =>
    health.responded({ status, headers }, fixtureExchange().facts)
  return { health, respond, clock: context.clock }
}

describe('the health of a destination', () => {
  it('depends on the expression', () => {
    const unhealthyExpression = 'response.code == 429 || "x-bad" in response.headers'
    const { health, respond } = healthOf({ unhealthyExpression })
    expect([respond(500), health.isEjected()]).toEqual([false, false])
    expect([respond(200, { 'x-bad': '1' }), health.isEjected()]).toEqual([true, true])
  })

  it('depends on the status if the expression fails', () => {
    const { respond } = healthOf({ unhealthyExpression: 'response.headers["x-none"] == "a"' })
    expect([respond(200), respond(503)]).toEqual([false, true])
  })

  it('ejects for the time that the response announces, unless one is configured', () => {
    const announced = healthOf({ eviction: {} })
    announced.respond(503, { 'retry-after': '60' })
    announced.clock.advance(59_000)
    expect(announced.health.isEjected()).toBe(true)
    announced.clock.advance(2_000)
    expect(announced.health.isEjected()).toBe(false)
    const configured = healthOf({ eviction: { duration: '1s' } })
    configured.respond(503, { 'retry-after': '60' })
    configured.clock.advance(1_001)
    expect(configured.health.isEjected()).toBe(false)
  })
})

describe('healthThreshold', () => {
  const eviction = { healthThreshold: 0.5, duration: '10s' }

  it('ejects after a failure below it, not after a number of failures', () => {
    const { health, respond } = healthOf({ eviction })
    // Health: 1, 0.7, 0.49. The health before a failure decides.
    respond(503)
    respond(503)
    expect(health.isEjected()).toBe(false)
    respond(503)
    expect(health.isEjected()).toBe(true)
  })

  it('counts earlier successes', () => {
    const { health, respond } = healthOf({ eviction })
    // 0.7, 0.49, 0.64, 0.45
    for (const status of [503, 503, 200, 503]) respond(status)
    expect(health.isEjected()).toBe(false)
    respond(503)
    expect(health.isEjected()).toBe(true)
  })

  it('ejects on either condition together with consecutiveFailures', () => {
    const { health, respond } = healthOf({ eviction: { ...eviction, consecutiveFailures: 2 } })
    respond(503)
    expect(health.isEjected()).toBe(false)
    respond(503)
    expect(health.isEjected()).toBe(true)
  })

  it.each([
    ['its own value', {}, 1],
    ['restoreHealth', { restoreHealth: 1 }, 3],
    ['a low restoreHealth', { restoreHealth: 0.1 }, 1],
  ])('applies after an ejection to %s', (_, more, failures) => {
    const { health, respond, clock } = healthOf({ eviction: { ...eviction, ...more } })
    for (let count = 0; count < 3; count += 1) respond(503)
    clock.advance(10_001)
    let needed = 0
    for (; !health.isEjected(); needed += 1) respond(503)
    expect(needed).toBe(failures)
  })

  it('has an effect on a destination after its first success', () => {
    const { health, respond, clock } = healthOf({ eviction: { ...eviction, restoreHealth: 0 } })
    for (let count = 0; count < 3; count += 1) respond(503)
    clock.advance(10_001)
    respond(200)
    respond(503)
    expect(health.isEjected()).toBe(false)
  })
})

it('is healthy until its memory is bound', () => {
  // As in a data plane on a thread, for an endpoint that was activated without compilation.
  const unbound: Memory = {
    plane: 0,
    planes: 2,
    region: () => ({
      int32: new Int32Array(),
      float64: new Float64Array(),
      uint8: new Uint8Array(),
      grow() {},
    }),
  }
  const context = { ...fixtureContext(), memory: unbound }
  const health = compileHealth({ eviction: { duration: '1s' } }, 'a', context)
  health?.failed()
  health?.succeeded()
  expect(health?.isEjected()).toBe(false)
})
