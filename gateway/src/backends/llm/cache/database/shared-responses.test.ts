import { afterEach, describe, expect, it, vi } from 'vitest'
import { fixtureContext } from '../../../../../test/fixtures/pipeline.ts'
import type { CachedRow, CachedRows } from '../../../../lib/planes/cached-rows.ts'
import { createSharedResponses } from './shared-responses.ts'

const scope = { place: 'gpt', secret: undefined }
const options = { ...scope, ttlMs: 60_000 }
const responseOf = (body: string | Buffer) => ({
  contentType: 'application/json',
  model: 'gpt-1',
  body: Buffer.from(body),
  storedAt: 0,
})

function shared(rows: Partial<CachedRows> = {}) {
  const written = new Map<string, CachedRow>()
  const context = fixtureContext()
  const responses = createSharedResponses({
    rows: {
      async read(key) {
        const row = written.get(key)
        return row && { content: row.content, ageMs: 1_500 }
      },
      async write(row) {
        written.set(row.key, row)
      },
      ...rows,
    },
    clock: context.clock,
    meter: context.metrics.databaseCache(),
  })
  const counted = (result: string) => context.decisions.get(`cache database ${result}`)
  return { responses, written, counted, clock: context.clock }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('responses in the database', () => {
  it('are found by the digest of the request, with their age', async () => {
    const { responses, counted } = shared()
    responses.write('a', responseOf('hi'), options)
    expect(await responses.read('a', scope)).toEqual({ ...responseOf('hi'), storedAt: 3_500 })
    expect(await responses.read('b', scope)).toBeUndefined()
    expect(await responses.read('a', { ...scope, place: 'other' })).toBeUndefined()
    expect([counted('stored'), counted('hit'), counted('miss')]).toEqual([1, 1, 2])
  })

  it('are misses if their content is that of another row', async () => {
    const { responses, written } = shared()
    responses.write('a', responseOf('hi'), options)
    responses.write('b', responseOf('ho'), options)
    const [one, other] = [...written.values()]
    if (one && other) written.set(one.key, { ...other, key: one.key })
    expect(await responses.read('a', scope)).toBeUndefined()
    expect(await responses.read('b', scope)).toBeDefined()
  })

  it('are misses during an outage, without a lookup for a second', async () => {
    let calls = 0
    const { responses, counted, clock } = shared({
      read() {
        calls += 1
        return Promise.reject(new Error('no connection'))
      },
    })
    for (let times = 0; times < 3; times += 1) expect(await responses.read('a', scope)).toBeUndefined()
    expect([calls, counted('failed'), counted('skipped')]).toEqual([1, 1, 2])
    clock.advance(1_000)
    await responses.read('a', scope)
    expect(calls).toBe(2)
  })

  it('are misses if the database does not respond', async () => {
    vi.useFakeTimers()
    const { responses, counted } = shared({ read: () => new Promise(() => undefined) })
    const reading = responses.read('a', scope)
    await vi.advanceTimersByTimeAsync(500)
    expect(await reading).toBeUndefined()
    expect(counted('failed')).toBe(1)
  })

  it('are dropped while too many writes are in progress', async () => {
    const pending: PromiseWithResolvers<void>[] = []
    const { responses, counted } = shared({
      write() {
        const write = Promise.withResolvers<void>()
        pending.push(write)
        return write.promise
      },
    })
    const large = responseOf(Buffer.alloc(12 * 1024 * 1024))
    for (const digest of ['a', 'b', 'c']) responses.write(digest, large, options)
    expect([pending.length, counted('dropped')]).toEqual([2, 1])
    pending[0]?.resolve()
    pending[1]?.reject(new Error('disk full'))
    await vi.waitFor(() => expect([counted('stored'), counted('failed')]).toEqual([1, 1]))
    responses.write('c', large, options)
    expect(pending).toHaveLength(3)
  })
})
