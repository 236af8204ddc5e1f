import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BodySink, BodySource } from './body.ts'
import type { Headers } from './headers.ts'
import { type PeekedBody, peekBody } from './peek-body.ts'

type Finish = { trailers?: Headers; error?: Error }

/** A source that respects back pressure, one chunk per turn of the caller. */
function sourceOf(chunks: readonly string[], { trailers, error }: Finish = {}) {
  const state = { cancelled: false, sent: 0 }
  let sink: BodySink | undefined
  let paused = false

  function flow() {
    while (sink && !paused && !state.cancelled && state.sent < chunks.length) {
      const chunk = Buffer.from(chunks[state.sent] ?? '')
      state.sent += 1
      paused = !sink.write(chunk)
    }
    if (paused || state.cancelled || state.sent < chunks.length) return
    if (error) sink?.fail(error)
    else sink?.end(trailers)
    sink = undefined
  }

  const source: BodySource = {
    start(to) {
      sink = to
      flow()
    },
    resume() {
      paused = false
      flow()
    },
    cancel() {
      state.cancelled = true
    },
  }
  return { source, state }
}

/** Reads a body through a sink that accepts `room` chunks before each pause. */
function collect({ body }: PeekedBody, room = 1): Promise<{ text: string; trailers: Headers | undefined }> {
  if (body === undefined || body instanceof Uint8Array) {
    return Promise.resolve({ text: Buffer.from(body ?? '').toString(), trailers: undefined })
  }
  return new Promise((resolve, reject) => {
    let text = ''
    let left = room
    body.start({
      write(chunk) {
        text += Buffer.from(chunk).toString()
        left -= 1
        if (left > 0) return true
        left = room
        queueMicrotask(() => body.resume())
        return false
      },
      end: (trailers) => resolve({ text, trailers }),
      fail: reject,
    })
  })
}

describe('peeked bodies', () => {
  it('returns the bytes of a body within the limit', async () => {
    const read = await peekBody(sourceOf(['ab', 'cd']).source, 4)
    expect(read).toMatchObject({ kind: 'complete' })
    expect(await collect(read)).toEqual({ text: 'abcd', trailers: undefined })
  })

  it('retains trailers of a complete body', async () => {
    const read = await peekBody(sourceOf(['ab'], { trailers: { 'grpc-status': '0' } }).source, 4)
    expect(read.kind === 'complete' && Buffer.from(read.bytes).toString()).toBe('ab')
    expect(await collect(read)).toEqual({ text: 'ab', trailers: { 'grpc-status': '0' } })
  })

  it('pauses a longer body after the limit', async () => {
    const { source, state } = sourceOf(['abc', 'def', 'ghi', 'jkl'])
    const read = await peekBody(source, 4)
    expect(read.kind).toBe('partial')
    expect(state.sent).toBe(2)
    expect((await collect(read)).text).toBe('abcdefghijkl')
  })

  it('forwards failures before and after the limit', async () => {
    const error = new Error('reset')
    await expect(peekBody(sourceOf(['a'], { error }).source, 4)).rejects.toBe(error)
    await expect(collect(await peekBody(sourceOf(['abc', 'd'], { error }).source, 2))).rejects.toBe(error)
  })

  it('rejects without memory, and cancels the source', async () => {
    const acquired: number[] = []
    const acquire = (bytes: number) => acquired.push(bytes) < 2
    const { source, state } = sourceOf(['abc', 'd', 'ef'])
    const read = peekBody({ ...source, budget: { acquire } }, 100)
    await expect(read).rejects.toMatchObject({ code: 'overloaded' })
    expect([acquired, state]).toEqual([[3, 1], { cancelled: true, sent: 2 }])
  })

  it('copies small chunks, instead of retaining the large buffers they were cut from', async () => {
    const { source } = sourceOf(Array.from({ length: 1000 }, () => 'ab'))
    const read = await peekBody(source, 1990)
    const seen: number[] = []
    if (read.kind !== 'partial') throw new Error('body is complete')
    await new Promise<void>((resolve) => {
      read.body.start({
        write: (chunk) => seen.push(chunk.byteLength) > 0,
        end: () => resolve(),
        fail() {},
      })
    })
    expect(seen.slice(0, 2)).toEqual([2, 1990])
  })

  it('makes no calls after a cancellation', async () => {
    const { source, state } = sourceOf(['abc', 'def', 'ghi'])
    const { body } = await peekBody(source, 4)
    const seen: string[] = []
    if (body === undefined || body instanceof Uint8Array) throw new Error('body is complete')
    body.start({
      write(chunk) {
        seen.push(Buffer.from(chunk).toString())
        body.cancel()
        return true
      },
      end: () => seen.push('end'),
      fail: () => seen.push('fail'),
    })
    expect([seen, state.cancelled]).toEqual([['abc'], true])
  })

  it('preserves every body for every limit and every sink', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 5 }), { maxLength: 8 }),
        fc.nat(20),
        fc.integer({ min: 1, max: 4 }),
        async (chunks, limit, room) => {
          const text = chunks.join('')
          const read = await peekBody(sourceOf(chunks).source, limit)
          expect((await collect(read, room)).text).toBe(text)
          expect(read.kind).toBe(Buffer.byteLength(text) > limit ? 'partial' : 'complete')
        },
      ),
    )
  })
})
