import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createAnnouncer } from './announcer.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function start() {
  const clock = { now: () => Date.now(), monotonic: () => Date.now() }
  const announcer = createAnnouncer(clock)
  const onChange = vi.fn()
  const onLost = vi.fn()
  announcer.watch({ onChange, onLost })
  return { announcer, onChange, onLost }
}

it('announces at once what is not known', () => {
  const { announcer, onChange } = start()
  announcer.known(4)
  announcer.at(4)
  expect(onChange).not.toHaveBeenCalled()
  announcer.at(5)
  expect(onChange).toHaveBeenCalledOnce()
})

it('announces a storm twice: its start, and its end after a rest', () => {
  const { announcer, onChange } = start()
  announcer.known(0)
  for (let generation = 1; generation <= 1000; generation += 1) announcer.at(generation)
  expect(onChange).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(25)
  expect(onChange).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(10_000)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('announces again after a while what was announced but not read', () => {
  const { announcer, onChange } = start()
  announcer.at(1)
  vi.advanceTimersByTime(500)
  announcer.at(1)
  expect(onChange).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(500)
  announcer.at(1)
  expect(onChange).toHaveBeenCalledTimes(2)
  announcer.known(1)
  vi.advanceTimersByTime(5000)
  announcer.at(1)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('announces an older generation, which a restored backup has', () => {
  const { announcer, onChange } = start()
  announcer.known(9)
  announcer.at(3)
  expect(onChange).toHaveBeenCalledOnce()
})

it('tells a loss once, and its end even where nothing has changed', () => {
  const { announcer, onChange, onLost } = start()
  announcer.known(1)
  announcer.lost(new Error('gone'))
  announcer.lost(new Error('still gone'))
  expect(onLost).toHaveBeenCalledOnce()
  announcer.at(1)
  expect(onChange).toHaveBeenCalledOnce()
  announcer.lost(new Error('gone again'))
  expect(onLost).toHaveBeenCalledTimes(2)
})

it('tells the end of a loss that was shorter than its rest', () => {
  const { announcer, onChange } = start()
  announcer.at(1)
  announcer.known(1)
  announcer.lost(new Error('gone'))
  announcer.at(1)
  vi.advanceTimersByTime(250)
  announcer.at(1)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('says nothing once it is closed', () => {
  const { announcer, onChange, onLost } = start()
  announcer.at(1)
  announcer.at(2)
  announcer.close()
  announcer.lost(new Error('gone'))
  announcer.at(3)
  vi.advanceTimersByTime(10_000)
  expect(onChange).toHaveBeenCalledOnce()
  expect(onLost).not.toHaveBeenCalled()
})

it('does not announce a commit of its own, even where its notification comes before its answer', () => {
  const { announcer, onChange } = start()
  announcer.known(1)
  const written = announcer.writing()
  announcer.at(2)
  vi.advanceTimersByTime(50)
  announcer.known(2)
  written()
  vi.advanceTimersByTime(5000)
  expect(onChange).not.toHaveBeenCalled()
})

it('announces the commit of another soon, however long a write of its own takes', () => {
  const { announcer, onChange } = start()
  announcer.known(1)
  announcer.writing()
  announcer.at(2)
  expect(onChange).not.toHaveBeenCalled()
  vi.advanceTimersByTime(200)
  expect(onChange).toHaveBeenCalledOnce()
})

it('announces at once again after a write', () => {
  const { announcer, onChange } = start()
  announcer.known(1)
  announcer.writing()()
  announcer.at(2)
  expect(onChange).toHaveBeenCalledOnce()
})
