import { describe, expect, it } from 'vitest'
import { type BodySink, type BodySource, readAll, withTransform } from './body.ts'

/** A source driven by the test. */
function manualSource() {
  let sink: BodySink | undefined
  const state = { cancelled: false, resumed: 0 }
  const source: BodySource = {
    start: (reader) => {
      sink = reader
    },
    resume: () => {
      state.resumed += 1
    },
    cancel: () => {
      state.cancelled = true
    },
  }
  return {
    source,
    state,
    write: (text: string) => sink?.write(Buffer.from(text)),
    end: () => sink?.end(),
    fail: (error: Error) => sink?.fail(error),
  }
}

describe('readAll', () => {
  it('joins the chunks of a source', async () => {
    const manual = manualSource()
    const read = readAll(manual.source, 100, 'request_too_large')
    manual.write('ab')
    manual.write('cd')
    manual.end()
    expect((await read).toString()).toBe('abcd')
  })

  it('copies small chunks, instead of retaining the large buffers they were cut from', async () => {
    let sink: BodySink | undefined
    const source: BodySource = {
      start(reader) {
        sink = reader
      },
      resume() {},
      cancel() {},
    }
    const read = readAll(source, 1_000_000, 'request_too_large')
    const large = Buffer.alloc(5000, 'L')
    sink?.write(Buffer.from('first '))
    const reused = Buffer.alloc(1)
    for (let index = 0; index < 40_000; index++) {
      reused.fill(index % 2 === 0 ? 'a' : 'b')
      sink?.write(reused)
    }
    sink?.write(large)
    reused.fill('c')
    sink?.write(reused)
    reused.fill('d')
    sink?.write(reused)
    sink?.end()
    expect((await read).toString()).toBe(`first ${'ab'.repeat(20_000)}${'L'.repeat(5000)}cd`)
  })

  it('returns a buffered body and an empty one unchanged', async () => {
    expect((await readAll(Buffer.from('x'), 100, 'request_too_large')).toString()).toBe('x')
    expect((await readAll(undefined, 100, 'request_too_large')).length).toBe(0)
  })

  it('accepts exactly the limit and rejects one byte more, cancelling the source', async () => {
    const fitting = manualSource()
    const read = readAll(fitting.source, 4, 'request_too_large')
    fitting.write('abcd')
    fitting.end()
    expect((await read).length).toBe(4)

    const large = manualSource()
    const refused = readAll(large.source, 4, 'request_too_large')
    large.write('abcd')
    large.write('e')
    await expect(refused).rejects.toMatchObject({ code: 'request_too_large' })
    expect(large.state.cancelled).toBe(true)
  })

  it('applies the limit to a buffered body', async () => {
    const refused = readAll(Buffer.from('abcde'), 4, 'request_too_large')
    await expect(refused).rejects.toMatchObject({ code: 'request_too_large' })
  })

  it('forwards a failure of the source', async () => {
    const manual = manualSource()
    const read = readAll(manual.source, 4, 'request_too_large')
    manual.fail(new Error('cut'))
    await expect(read).rejects.toThrow('cut')
  })
})

describe('withTransform', () => {
  it('puts the transform between source and sink and preserves flow control', () => {
    const manual = manualSource()
    const shouting = withTransform(manual.source, (sink) => ({
      ...sink,
      write: (chunk) => sink.write(Buffer.from(Buffer.from(chunk).toString().toUpperCase())),
    }))
    const written: string[] = []
    shouting.start({ write: (chunk) => written.push(String(chunk)) < 2, end() {}, fail() {} })
    expect(manual.write('a')).toBe(true)
    expect(manual.write('b')).toBe(false)
    shouting.resume()
    shouting.cancel()
    expect(written).toEqual(['A', 'B'])
    expect(manual.state).toEqual({ cancelled: true, resumed: 1 })
  })
})
