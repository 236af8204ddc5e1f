import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { keySetOf, signingPair, upstreamContext } from '../../../test/fixtures/jwt.ts'
import { linkMemory } from '../../../test/support/linked-peers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { KeySet } from './key-set.ts'
import { createRemoteKeySource, fixedJwksUri } from './key-source.ts'

const url = 'https://id.example.com/keys?x=1'
const first = signingPair('first')
const second = signingPair('second')

function setUp(text: string | undefined = keySetOf(first), headers: Record<string, string> = {}) {
  const { context, upstream } = upstreamContext()
  if (text !== '') upstream.answers.set(url, { text, headers })
  return {
    clock: context.clock,
    source: createRemoteKeySource('keys', fixedJwksUri(url), context),
    serve: (next: string, status = 200) => upstream.answers.set(url, { text: next, headers, status }),
    fail: () => upstream.answers.delete(url),
    hang: () => upstream.answers.set(url, () => new Promise<Reply>(() => {})),
    fetches: () => upstream.count(url),
  }
}

function has(keys: KeySet | undefined, id: string): boolean {
  return (keys?.find(id, 'ES256').length ?? 0) > 0
}

const minuteMs = 60_000

afterEach(() => {
  vi.useRealTimers()
})

describe('remote keys', () => {
  it('are fetched once, at the first use', async () => {
    const { source, fetches } = setUp()
    expect(fetches()).toBe(0)
    const all = await Promise.all([source.current(), source.current(), source.refetch('first')])
    expect(all.every((keys) => has(keys, 'first'))).toBe(true)
    expect(source.current()).toBe(all[0])
    expect(fetches()).toBe(1)
  })

  it('are refreshed in the background after 15 minutes', async () => {
    const { clock, source, serve, fetches } = setUp()
    const keys = await source.current()
    clock.advance(15 * minuteMs - 1)
    expect(source.current()).toBe(keys)
    expect(fetches()).toBe(1)
    serve(keySetOf(second))
    clock.advance(1)
    expect(source.current()).toBe(keys)
    await vi.waitFor(() => expect(has(syncKeys(source.current()), 'second')).toBe(true))
    expect(fetches()).toBe(2)
  })

  it('are awaited after a long time without use', async () => {
    const { clock, source, serve } = setUp()
    await source.current()
    serve(keySetOf(second))
    clock.advance(20 * minuteMs)
    expect(has(await source.current(), 'second')).toBe(true)
  })

  it.each([
    [{ 'cache-control': 'public, max-age=600' }, 10 * minuteMs],
    [{ 'cache-control': 'max-age=1' }, minuteMs],
    [{ 'cache-control': 'no-store' }, minuteMs],
    [{ 'cache-control': 'max-age=9999999' }, 24 * 60 * minuteMs],
    [{ expires: new Date(5_000 + 5 * minuteMs).toUTCString() }, 5 * minuteMs],
    [{ expires: '0' }, minuteMs],
  ])('expire by the headers of the response, within limits: %j', async (headers, dueMs) => {
    const { clock, source, fetches } = setUp(undefined, headers)
    await source.current()
    clock.advance(dueMs - 1)
    await source.current()
    expect(fetches()).toBe(1)
    clock.advance(1)
    await source.current()
    expect(fetches()).toBe(2)
  })

  it('remain the same object if the document is unchanged', async () => {
    const { clock, source } = setUp()
    const keys = await source.current()
    clock.advance(30 * minuteMs)
    expect(await source.current()).toBe(keys)
  })
})

describe('a provider that fails', () => {
  it('is retried with backoff while no keys are available', async () => {
    const { clock, source, serve, fetches } = setUp('')
    expect(await source.current()).toBeUndefined()
    expect(source.current()).toBeUndefined()
    expect(fetches()).toBe(1)
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]) {
      const before = fetches()
      clock.advance(pauseMs - 1)
      expect(await source.current()).toBeUndefined()
      expect(fetches()).toBe(before)
      clock.advance(1)
      expect(await source.current()).toBeUndefined()
      expect(fetches()).toBe(before + 1)
    }
    serve(keySetOf(first))
    clock.advance(15_000)
    expect(has(await source.current(), 'first')).toBe(true)
  })

  it.each([
    ['an error', 'oops', 500],
    ['a page', '<html>', 200],
    ['no keys', '{"keys":[]}', 200],
    ['far too much', `{"keys":[],"x":"${'x'.repeat(300_000)}"}`, 200],
  ])('with %s does not replace the previous keys', async (_, text, status) => {
    const { clock, source, serve, fetches } = setUp()
    await source.current()
    serve(text, status)
    clock.advance(60 * minuteMs)
    expect(has(await source.current(), 'first')).toBe(true)
    expect(fetches()).toBe(2)
    expect(has(syncKeys(source.current()), 'first')).toBe(true)
    clock.advance(60 * minuteMs)
    expect(has(syncKeys(source.current()), 'first')).toBe(true)
    serve(keySetOf(second))
    await vi.waitFor(() => {
      clock.advance(15_000)
      expect(has(syncKeys(source.current()), 'second')).toBe(true)
    })
  })

  it('delays requests once, for ten seconds, if it hangs', async () => {
    vi.useFakeTimers()
    const { clock, source, hang } = setUp()
    await source.current()
    hang()
    clock.advance(60 * minuteMs)
    const waiting = source.current()
    expect(waiting).toBeInstanceOf(Promise)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(has(await waiting, 'first')).toBe(true)
    clock.advance(60 * minuteMs)
    expect(has(syncKeys(source.current()), 'first')).toBe(true)
  })
})

describe('an unknown key', () => {
  it('causes one fetch per 30 s', async () => {
    const { clock, source, serve, fetches } = setUp()
    await source.current()
    serve(keySetOf(first, second))
    expect(has(await source.refetch('second'), 'second')).toBe(true)
    await source.refetch('third')
    clock.advance(29_999)
    await source.refetch('third')
    expect(fetches()).toBe(3)
    clock.advance(1)
    await source.refetch('third')
    expect(fetches()).toBe(4)
  })

  it('does not delay a rotation if the same forged ids repeat', async () => {
    const { source, serve, fetches } = setUp()
    await source.current()
    for (let round = 0; round < 1_000; round += 1) await source.refetch(`forged ${round % 4}`)
    expect(fetches()).toBe(1 + 4)
    serve(keySetOf(second))
    expect(has(await source.refetch('second'), 'second')).toBe(true)
  })

  it('delays a rotation by at most 10 s, with 6 fetches a minute, if every forged id is new', async () => {
    const { clock, source, serve, fetches } = setUp(undefined, { 'cache-control': 'max-age=86400' })
    await source.current()
    for (let second = 0; second < 600; second += 1) {
      clock.advance(1_000)
      for (let index = 0; index < 5; index += 1) await source.refetch(`forged ${second} ${index}`)
    }
    expect(fetches()).toBeLessThanOrEqual(1 + 5 + 60)
    serve(keySetOf(second))
    clock.advance(10_000)
    expect(has(await source.refetch('second'), 'second')).toBe(true)
  })

  it('is found immediately after a rotation and a few forged ids, within the limit of fetches', async () => {
    const step = fc.record({
      forged: fc.integer({ min: 0, max: 3 }),
      pauseMs: fc.integer({ min: 0, max: 9_999 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { clock, source, serve, fetches } = setUp(undefined, { 'cache-control': 'max-age=86400' })
        await source.current()
        for (const { forged, pauseMs } of steps) {
          clock.advance(pauseMs)
          await source.refetch(`forged ${forged}`)
        }
        const elapsedMs = steps.reduce((sum, { pauseMs }) => sum + pauseMs, 0)
        expect(fetches()).toBeLessThanOrEqual(1 + 4 * (1 + Math.floor(elapsedMs / 30_000)))
        serve(keySetOf(second))
        expect(has(await source.refetch('second'), 'second')).toBe(true)
      }),
    )
  })

  it('causes another fetch after a failed one', async () => {
    const { clock, source, serve, fail } = setUp()
    await source.current()
    fail()
    await source.refetch('second')
    serve(keySetOf(second))
    clock.advance(1_000)
    expect(has(await source.refetch('second'), 'second')).toBe(true)
  })

  it('does not increase the fetches of a failing provider', async () => {
    const { clock, source, fail, fetches } = setUp()
    await source.current()
    fail()
    await source.refetch('second')
    clock.advance(30_000)
    await source.refetch('second')
    expect(fetches()).toBe(3)
    clock.advance(1_999)
    expect(has(await source.refetch('second'), 'first')).toBe(true)
    expect(fetches()).toBe(3)
  })
})

describe('a discovered URL', () => {
  it('is resolved before each fetch; a failure does not replace the keys', async () => {
    const { context, upstream } = upstreamContext()
    upstream.answers.set(url, { text: keySetOf(first) })
    upstream.answers.set(`${url}&moved`, { text: keySetOf(second) })
    let locate = async () => url
    const source = createRemoteKeySource('keys', { name: 'keys', resolve: () => locate() }, context)
    expect(has(await source.current(), 'first')).toBe(true)
    locate = () => Promise.reject(new Error('lost'))
    context.clock.advance(60 * minuteMs)
    expect(has(await source.current(), 'first')).toBe(true)
    locate = async () => `${url}&moved`
    context.clock.advance(1_000)
    void source.current()
    await vi.waitFor(() => expect(has(syncKeys(source.current()), 'second')).toBe(true))
  })
})

describe('the data planes of a process', () => {
  function setUpPlanes(text = keySetOf(first)) {
    const { context, upstream } = upstreamContext()
    upstream.answers.set(url, { text, headers: { 'cache-control': 'max-age=86400' } })
    const sources = linkMemory(4).map((memory) =>
      createRemoteKeySource('keys', fixedJwksUri(url), { ...context, memory }),
    )
    return { clock: context.clock, upstream, sources, fetches: () => upstream.count(url) }
  }

  it('fetch keys once', async () => {
    const { sources, fetches } = setUpPlanes()
    const all = await Promise.all(sources.flatMap((source) => [source.current(), source.refetch('first')]))
    expect(all.every((keys) => has(keys, 'first'))).toBe(true)
    expect(fetches()).toBe(1)
    expect(sources.every((source) => has(syncKeys(source.current()), 'first'))).toBe(true)
  })

  it('fetch once for an unknown key id, and share the limits of such fetches', async () => {
    const { clock, upstream, sources, fetches } = setUpPlanes()
    await sources[0]?.current()
    upstream.answers.set(url, { text: keySetOf(first, second) })
    const found = await Promise.all(sources.map((source) => source.refetch('second')))
    expect(found.every((keys) => has(keys, 'second'))).toBe(true)
    expect(fetches()).toBe(2)
    for (let forged = 0; forged < 100; forged += 1) await sources[forged % 4]?.refetch(`forged ${forged}`)
    expect(fetches()).toBe(1 + 5)
    clock.advance(10_000)
    for (const source of sources) await source.refetch('forged again')
    expect(fetches()).toBe(1 + 6)
  })

  it('share the pauses after failures', async () => {
    const { clock, upstream, sources, fetches } = setUpPlanes()
    upstream.answers.delete(url)
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]) {
      const before = fetches()
      await Promise.all(sources.map((source) => source.current()))
      clock.advance(pauseMs - 1)
      await Promise.all(sources.flatMap((source) => [source.current(), source.refetch('first')]))
      expect(fetches()).toBe(before + 1)
      clock.advance(1)
    }
  })
})

function syncKeys(keys: KeySet | undefined | Promise<KeySet | undefined>): KeySet | undefined {
  if (keys instanceof Promise) throw new Error('had to wait for keys')
  return keys
}
