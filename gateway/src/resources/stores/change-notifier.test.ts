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

it('notifies immediately of an unread generation', () => {
  const { notifier, onChange } = start()
  notifier.markRead(4)
  notifier.observe(4)
  expect(onChange).not.toHaveBeenCalled()
  notifier.observe(5)
  expect(onChange).toHaveBeenCalledOnce()
})

it('notifies twice of a burst: at its start, and after the interval', () => {
  const { notifier, onChange } = start()
  notifier.markRead(0)
  for (let generation = 1; generation <= 1000; generation += 1) notifier.observe(generation)
  expect(onChange).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(25)
  expect(onChange).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(10_000)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('repeats a notification if the generation was not read', () => {
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

it('notifies of an older generation, as of a restored backup', () => {
  const { notifier, onChange } = start()
  notifier.markRead(9)
  notifier.observe(3)
  expect(onChange).toHaveBeenCalledOnce()
})

it('reports an outage once, and its end without changes too', () => {
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

it('reports the end of an outage shorter than the interval', () => {
  const { notifier, onChange } = start()
  notifier.observe(1)
  notifier.markRead(1)
  notifier.reportOutage(new Error('gone'))
  notifier.observe(1)
  vi.advanceTimersByTime(250)
  notifier.observe(1)
  expect(onChange).toHaveBeenCalledTimes(2)
})

it('does not notify after it was closed', () => {
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

it('does not notify of an own commit, even if its notification precedes its result', () => {
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

it('notifies soon of the commit of another process during a long own write', () => {
  const { notifier, onChange } = start()
  notifier.markRead(1)
  notifier.beginWrite()
  notifier.observe(2)
  expect(onChange).not.toHaveBeenCalled()
  vi.advanceTimersByTime(200)
  expect(onChange).toHaveBeenCalledOnce()
})

it('notifies immediately again after a write', () => {
  const { notifier, onChange } = start()
  notifier.markRead(1)
  notifier.beginWrite()()
  notifier.observe(2)
  expect(onChange).toHaveBeenCalledOnce()
})
