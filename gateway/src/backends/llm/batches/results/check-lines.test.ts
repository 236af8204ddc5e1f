import { describe, expect, it } from 'vitest'
import { type BodySink, readAll, sourceOf } from '../../../../net/http/body.ts'
import { checkLines } from './check-lines.ts'

const upper = async (line: Buffer | undefined) => Buffer.from(line?.toString().toUpperCase() ?? 'too long')

/** A source whose chunks a test sends. */
function openSource() {
  const state = { sink: undefined as BodySink | undefined, resumed: 0, cancelled: 0 }
  const source = {
    start(sink: BodySink) {
      state.sink = sink
    },
    resume() {
      state.resumed += 1
    },
    cancel() {
      state.cancelled += 1
    },
  }
  const write = (text: string) => state.sink?.write(Buffer.from(text))
  return { state, source, write }
}

function collect(isFull = () => false) {
  const seen: string[] = []
  const sink: BodySink = {
    write(chunk) {
      seen.push(Buffer.from(chunk).toString())
      return !isFull()
    },
    end: () => seen.push('end'),
    fail: (error) => seen.push(error.message),
  }
  return { seen, sink }
}

/** Lets pending checks finish. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('checked lines', () => {
  it.each([1, 2, 7, 100])('are forwarded in order from chunks of %i bytes', async (size) => {
    const text = Buffer.from('one\ntwo\n\nthree\nfour')
    const { state, source } = openSource()
    const reading = readAll(checkLines(source, upper, 100), 1000, 'upstream_too_large')
    for (let start = 0; start < text.length; start += size)
      state.sink?.write(text.subarray(start, start + size))
    state.sink?.end()
    expect((await reading).toString()).toBe('ONE\nTWO\n\nTHREE\nFOUR\n')
  })

  it('beyond the limit reach the check without their text', async () => {
    const body = Buffer.from(`a\n${'x'.repeat(50)}\nb\n${'x'.repeat(50)}`)
    const checked = checkLines(sourceOf(body), upper, 10)
    expect((await readAll(checked, 1000, 'upstream_too_large')).toString()).toBe('A\ntoo long\nB\ntoo long\n')
  })

  it('pause the source during checks, and wait for a slow client', async () => {
    const { state, source, write } = openSource()
    let isFull = true
    const { seen, sink } = collect(() => isFull)
    const checked = checkLines(source, upper, 100)
    checked.start(sink)
    expect(write('a\nb\nc\n')).toBe(false)
    await settled()
    expect([seen, state.resumed]).toEqual([['A\n'], 0])
    isFull = false
    checked.resume()
    await settled()
    expect([seen, state.resumed]).toEqual([['A\n', 'B\n', 'C\n'], 1])
  })

  it('end with the error of a failed check', async () => {
    const { state, source, write } = openSource()
    const { seen, sink } = collect()
    const check = async (line: Buffer | undefined) => {
      if (line?.toString() === 'b') throw new Error('failed')
      return upper(line)
    }
    checkLines(source, check, 100).start(sink)
    write('a\nb\nc\n')
    await settled()
    write('d\n')
    await settled()
    expect([seen, state.cancelled]).toEqual([['A\n', 'failed'], 1])
  })

  it('end with the error of the source behind the lines before it', async () => {
    const { state, source, write } = openSource()
    const { seen, sink } = collect()
    checkLines(source, upper, 100).start(sink)
    write('a\nb')
    state.sink?.fail(new Error('lost'))
    await settled()
    expect(seen).toEqual(['A\n', 'lost'])
  })

  it('stop after a cancellation', async () => {
    const { state, source, write } = openSource()
    const { seen, sink } = collect()
    const checked = checkLines(source, upper, 100)
    checked.start(sink)
    write('a\n')
    checked.cancel()
    await settled()
    expect([seen, state.cancelled]).toEqual([[], 1])
  })
})
