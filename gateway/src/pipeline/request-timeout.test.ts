import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import { createCancellation } from '../lib/cancellation.ts'
import { GatewayError } from '../lib/gateway-error.ts'
import type { Reply } from '../net/http-client/send.ts'
import type { Exchange } from './exchange.ts'
import type { Backend } from './policy.ts'
import { withRequestTimeout } from './request-timeout.ts'

const ok: Reply = { status: 200, headers: {}, body: undefined }
const clock = { now: () => Date.now(), monotonic: () => Date.now() }

/** An exchange that arrived some time ago, and what its client does. */
function arrived(agoMs = 0) {
  const client = createCancellation()
  const exchange: Exchange = {
    ...fixtureExchange(),
    cancellation: client,
    startedAt: clock.monotonic() - agoMs,
  }
  return { client, exchange }
}

/** Replies after a delay, and records its cancellation. */
function slow(ms: number, reply: Reply = ok) {
  const state = { cancelled: false }
  const backend: Backend = (exchange) => {
    exchange.cancellation.onCancel(() => {
      state.cancelled = true
    })
    return new Promise((resolve) => setTimeout(() => resolve(reply), ms))
  }
  return { backend, state }
}

/** The outcome, observed from the start so that no rejection is unhandled. */
function outcomeOf(answer: Reply | Promise<Reply>): Promise<unknown> {
  return Promise.resolve(answer).then(
    (reply) => reply.status,
    (error: unknown) => (error instanceof GatewayError ? error.code : error),
  )
}

describe('withRequestTimeout', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('passes a response in time through, without limit on its body', async () => {
    const { backend, state } = slow(90)
    const outcome = outcomeOf(withRequestTimeout(backend, 100, clock)(arrived().exchange))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await outcome).toBe(200)
    expect(state.cancelled).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('permits limits of days', async () => {
    const { backend } = slow(5_000)
    const outcome = outcomeOf(withRequestTimeout(backend, 30 * 86_400_000, clock)(arrived().exchange))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await outcome).toBe(200)
  })

  it('ends the wait at the limit and cancels the work', async () => {
    const { backend, state } = slow(1_000)
    const { exchange, client } = arrived()
    const outcome = outcomeOf(withRequestTimeout(backend, 100, clock)(exchange))
    await vi.advanceTimersByTimeAsync(99)
    expect(state.cancelled).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcome).toBe('upstream_timeout')
    expect(state.cancelled).toBe(true)
    expect(client.cancelled).toBe(false)
  })

  it('reports the timeout even if the cancelled work fails immediately', async () => {
    const backend: Backend = (exchange) =>
      new Promise((_, reject) => exchange.cancellation.onCancel(() => reject(new Error('cancelled'))))
    const outcome = outcomeOf(withRequestTimeout(backend, 100, clock)(arrived().exchange))
    await vi.advanceTimersByTimeAsync(100)
    expect(await outcome).toBe('upstream_timeout')
  })

  it('counts from the arrival of the request', async () => {
    const { backend } = slow(50)
    const outcome = outcomeOf(withRequestTimeout(backend, 100, clock)(arrived(60).exchange))
    await vi.advanceTimersByTimeAsync(40)
    expect(await outcome).toBe('upstream_timeout')
  })

  it('does not start without remaining time', () => {
    const backend = vi.fn(() => ok)
    expect(() => withRequestTimeout(backend, 100, clock)(arrived(100).exchange)).toThrow('request timeout')
    expect(backend).not.toHaveBeenCalled()
  })

  it('cancels the work when the client disconnects, before and after the head', async () => {
    const { backend, state } = slow(10)
    const { exchange, client } = arrived()
    const outcome = outcomeOf(withRequestTimeout(backend, 100, clock)(exchange))
    await vi.advanceTimersByTimeAsync(10)
    expect(await outcome).toBe(200)
    client.cancel()
    expect(state.cancelled).toBe(true)
    expect(exchange.cancellation.cancelled).toBe(true)
  })

  it('discards a late response', async () => {
    const cancelBody = vi.fn()
    const tunnel = new PassThrough()
    const late: Reply = { ...ok, body: { start() {}, resume() {}, cancel: cancelBody }, tunnel }
    const outcome = outcomeOf(withRequestTimeout(slow(200, late).backend, 100, clock)(arrived().exchange))
    await vi.advanceTimersByTimeAsync(200)
    expect(await outcome).toBe('upstream_timeout')
    expect(cancelBody).toHaveBeenCalledOnce()
    expect(tunnel.destroyed).toBe(true)
  })

  it('passes failures and responses through immediately', async () => {
    const failing: Backend = () => Promise.reject(new GatewayError('upstream_connect', 'refused'))
    expect(await outcomeOf(withRequestTimeout(failing, 100, clock)(arrived().exchange))).toBe(
      'upstream_connect',
    )
    expect(withRequestTimeout(() => ok, 100, clock)(arrived().exchange)).toBe(ok)
    expect(vi.getTimerCount()).toBe(0)
  })
})
