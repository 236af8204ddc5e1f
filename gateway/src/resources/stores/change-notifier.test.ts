import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createChangeNotifier } from './change-notifier.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function start() {
  const clock = { now: () => Date.now(), monotonic: () => Date.now() }
  const notifier = createChangeNotifier(clock)
  const onChange = vi.fn()
  const onLost = vi.fn()
  notifier.watch({ onChange, onLost })
  return { notifier, onChange, onLost }
}

it('announces at once what is not known', () => {
  const { notifier, onChange } = start()
  notifier.markRead(4)
  notifier.observe(4)
  expect(onChange).not.toHaveBeenCalled()
  notifier.observe(5)
  expect(onChange).toHaveBeenCalledOnce()
})

it('announces a storm twice: its start, and its end after a rest', () => {
  const { notifier, onChange } = start()
  notifier.markRead(0)
  for (let generation = 1; generation <= 1000; generation += 1) notifier.observe(generation)
  expect(onChange).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(25)
  expect(onChange).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(10_000)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('announces again after a while what was announced but not read', () => {
  const { notifier, onChange } = start()
  notifier.observe(1)
  vi.advanceTimersByTime(500)
  notifier.observe(1)
  expect(onChange).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(500)
  notifier.observe(1)
  expect(onChange).toHaveBeenCalledTimes(2)
  notifier.markRead(1)
  vi.advanceTimersByTime(5000)
  notifier.observe(1)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('announces an older generation, which a restored backup has', () => {
  const { notifier, onChange } = start()
  notifier.markRead(9)
  notifier.observe(3)
  expect(onChange).toHaveBeenCalledOnce()
})

it('tells a loss once, and its end even where nothing has changed', () => {
  const { notifier, onChange, onLost } = start()
  notifier.markRead(1)
  notifier.reportOutage(new Error('gone'))
  notifier.reportOutage(new Error('still gone'))
  expect(onLost).toHaveBeenCalledOnce()
  notifier.observe(1)
  expect(onChange).toHaveBeenCalledOnce()
  notifier.reportOutage(new Error('gone again'))
  expect(onLost).toHaveBeenCalledTimes(2)
})

it('tells the end of a loss that was shorter than its rest', () => {
  const { notifier, onChange } = start()
  notifier.observe(1)
  notifier.markRead(1)
  notifier.reportOutage(new Error('gone'))
  notifier.observe(1)
  vi.advanceTimersByTime(250)
  notifier.observe(1)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('says nothing once it is closed', () => {
  const { notifier, onChange, onLost } = start()
  notifier.observe(1)
  notifier.observe(2)
  notifier.close()
  notifier.reportOutage(new Error('gone'))
  notifier.observe(3)
  vi.advanceTimersByTime(10_000)
  expect(onChange).toHaveBeenCalledOnce()
  expect(onLost).not.toHaveBeenCalled()
})

it('does not announce a commit of its own, even where its notification comes before its answer', () => {
  const { notifier, onChange } = start()
  notifier.markRead(1)
  const written = notifier.beginWrite()
  notifier.observe(2)
  vi.advanceTimersByTime(50)
  notifier.markRead(2)
  written()
  vi.advanceTimersByTime(5000)
  expect(onChange).not.toHaveBeenCalled()
})

it('announces the commit of another soon, however long a write of its own takes', () => {
  const { notifier, onChange } = start()
  notifier.markRead(1)
  notifier.beginWrite()
  notifier.observe(2)
  expect(onChange).not.toHaveBeenCalled()
  vi.advanceTimersByTime(200)
  expect(onChange).toHaveBeenCalledOnce()
})

it('announces at once again after a write', () => {
  const { notifier, onChange } = start()
  notifier.markRead(1)
  notifier.beginWrite()()
  notifier.observe(2)
  expect(onChange).toHaveBeenCalledOnce()
})
