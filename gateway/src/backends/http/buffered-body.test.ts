import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Body, type BodySink, type BodySource, isSource, readAll } from '../../net/http/body.ts'
import { bufferBody, copyBody, declaredLength } from './buffered-body.ts'

const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 12 })

describe('a buffered body', () => {
  it('has the same bytes, buffered exactly if they fit', async () => {
    await fc.assert(
      fc.asyncProperty(pieces, fc.nat(200), fc.boolean(), async (chunks, limit, eager) => {
        const whole = Buffer.concat(chunks)
        const held = await bufferBody(sourceOf(chunks, eager), limit)
        expect(isSource(held)).toBe(whole.length > limit)
        expect(await readAll(held, 10_000, 'internal')).toEqual(whole)
      }),
    )
  })

  it('reaches a reader that is full after every chunk', async () => {
    await fc.assert(
      fc.asyncProperty(pieces, fc.nat(100), async (chunks, limit) => {
        const held = await bufferBody(sourceOf(chunks, false), limit)
        expect(await readSlowly(held)).toEqual(Buffer.concat(chunks))
      }),
    )
  })

  it('fails with the body', async () => {
    const failing = (after: Uint8Array[]): BodySource => ({
      start(sink) {
        for (const chunk of after) sink.write(chunk)
        sink.fail(new Error('gone'))
      },
      resume() {},
      cancel() {},
    })
    await expect(bufferBody(failing([Buffer.from('ab')]), 10)).rejects.toThrow('gone')
    const larger = await bufferBody(failing([Buffer.from('abcdef')]), 3)
    await expect(readAll(larger, 100, 'internal')).rejects.toThrow('gone')
  })

  it('returns bytes unchanged', () => {
    const bytes = Buffer.from('x')
    expect(bufferBody(bytes, 0)).toBe(bytes)
    expect(bufferBody(undefined, 0)).toBeUndefined()
  })
})

describe('a copied body', () => {
  it('is not copied with an exhausted budget', async () => {
    const takes: number[] = []
    const budget = {
      acquire(bytes: number) {
        takes.push(bytes)
        return takes.length < 2
      },
    }
    const chunks = [Buffer.from('one'), Buffer.from('four'), Buffer.from('five')]
    let isCopied = false
    const source = copyBody({ ...sourceOf(chunks, false), budget }, 100, () => {
      isCopied = true
    })
    expect(await readSlowly(source)).toEqual(Buffer.from('onefourfive'))
    expect([isCopied, takes]).toEqual([false, [3, 4]])
  })

  it('is unchanged for its reader, and copied if it fits', async () => {
    await fc.assert(
      fc.asyncProperty(pieces, fc.nat(200), async (chunks, limit) => {
        const whole = Buffer.concat(chunks)
        let copy: Uint8Array | undefined
        const source = copyBody(sourceOf(chunks, false), limit, (bytes) => {
          copy = bytes
        })
        expect(await readSlowly(source)).toEqual(whole)
        expect(copy).toEqual(whole.length <= limit ? whole : undefined)
      }),
    )
  })
})

describe('declaredLength', () => {
  it('is defined without chunked coding', () => {
    expect(declaredLength({ 'content-length': '12' })).toBe(12)
    expect(declaredLength({ 'content-length': '12', 'transfer-encoding': 'chunked' })).toBeUndefined()
    expect(declaredLength({})).toBeUndefined()
  })
})

/** A source that respects backpressure; an eager one writes all its data first, as a socket may. */
function sourceOf(chunks: readonly Uint8Array[], eager: boolean): BodySource {
  const left = [...chunks]
  let sink: BodySink | undefined
  function flow() {
    for (let chunk = left.shift(); chunk; chunk = left.shift()) {
      if (sink?.write(chunk) === false && !eager) return
    }
    sink?.end()
    sink = undefined
  }
  return {
    start(reader) {
      sink = reader
      queueMicrotask(flow)
    },
    resume: () => queueMicrotask(flow),
    cancel() {},
  }
}

function readSlowly(body: Body): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (!isSource(body)) {
      resolve(Buffer.from(body ?? []))
      return
    }
    const chunks: Uint8Array[] = []
    body.start({
      write(chunk) {
        chunks.push(chunk)
        setImmediate(() => body.resume())
        return false
      },
      end: () => resolve(Buffer.concat(chunks)),
      fail: reject,
    })
  })
}
