import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLineWriter, type WriteBytes } from './line-writer.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A file descriptor whose writes complete under control of the test. */
function fakeFile() {
  const written: string[] = []
  let pending: { text: string; done: Parameters<WriteBytes>[2] } | undefined
  const write: WriteBytes = (_, bytes, done) => {
    pending = { text: bytes.toString(), done }
  }
  return {
    written,
    write,
    isBusy: () => pending !== undefined,
    takes(bytes = Number.POSITIVE_INFINITY) {
      const current = pending
      if (!current) throw new Error('nothing is being written')
      pending = undefined
      const size = Math.min(bytes, Buffer.byteLength(current.text))
      written.push(Buffer.from(current.text).subarray(0, size).toString())
      current.done(null, size)
    },
    fails(code: string) {
      const current = pending
      pending = undefined
      current?.done(Object.assign(new Error(code), { code }), 0)
    },
  }
}

const options = {
  flushEveryMs: 250,
  fullAt: 10,
  mostWaiting: 40,
  lossNotice: (lines: number) => `lost ${lines}\n`,
}

it('writes lines together, when there are enough or time has passed', () => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  writer.write('one\n')
  expect(file.isBusy()).toBe(false)
  vi.advanceTimersByTime(250)
  file.takes()
  writer.write('two\n')
  writer.write('three\n')
  file.takes()
  expect(file.written).toEqual(['one\n', 'two\nthree\n'])
})

it('goes on where a write took a part', () => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  writer.write('0123456789\n')
  file.takes(4)
  file.takes()
  expect(file.written.join('')).toBe('0123456789\n')
})

it('does not wait for a reader that has stopped: it drops lines past a bound and reports it later', () => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  writer.write('0123456789\n')
  for (let line = 0; line < 100; line++) writer.write(`line ${line % 10}\n`)
  file.takes()
  file.takes()
  const kept = [0, 1, 2, 3, 4].map((line) => `line ${line}\n`).join('')
  expect(file.written).toEqual(['0123456789\n', `lost 95\n${kept}`])
})

it('tries again where the file is busy', () => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  writer.write('0123456789\n')
  file.fails('EAGAIN')
  vi.advanceTimersByTime(250)
  file.takes()
  expect(file.written).toEqual(['0123456789\n'])
})

it.each(['EPIPE', 'ENOSPC', 'EIO'])('survives %s and counts lost lines', (code) => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  writer.write('0123456789\n')
  file.fails(code)
  writer.write('lost as well\n')
  file.fails(code)
  writer.write('later\n')
  vi.advanceTimersByTime(250)
  file.takes()
  expect(file.written).toEqual(['lost 2\nlater\n'])
})

it('flushes queued lines, and lines written meanwhile', async () => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  writer.write('a\n')
  const flushed = vi.fn()
  const flush = writer.flush().then(flushed)
  writer.write('b\n')
  file.takes()
  file.takes()
  await flush
  expect(file.written).toEqual(['a\n', 'b\n'])
})

it('flushes at once when nothing waits, and gives up on a reader that has stopped', async () => {
  const file = fakeFile()
  const writer = createLineWriter(file.write, options)
  await writer.flush()
  writer.write('a\n')
  const flush = writer.flush()
  await vi.advanceTimersByTimeAsync(1000)
  await flush
  expect(file.written).toEqual([])
})
