import { expect, it } from 'vitest'
import { countWorkers, thisMachine } from './worker-count.ts'

const linux = { cores: 6, dividesConnections: true }
const other = { cores: 6, dividesConnections: false }

it('takes the configuration, then the environment, then the cores', () => {
  expect(countWorkers(3, { WORKER_THREADS: '2' }, linux)).toBe(3)
  expect(countWorkers(undefined, { WORKER_THREADS: '2' }, linux)).toBe(2)
  expect(countWorkers(undefined, {}, linux)).toBe(6)
  expect(countWorkers('auto', { WORKER_THREADS: '2' }, linux)).toBe(6)
  expect(countWorkers('auto', {}, { ...linux, cores: 0 })).toBe(1)
})

it('uses one thread on systems that do not divide connections, and refuses more', () => {
  expect(countWorkers('auto', {}, other)).toBe(1)
  expect(countWorkers(1, {}, other)).toBe(1)
  expect(() => countWorkers(2, {}, other)).toThrow('config.workerThreads must be 1 or auto on this system')
  expect([thisMachine('linux', 2), thisMachine('darwin', 2)].map((one) => one.dividesConnections)).toEqual([
    true,
    false,
  ])
})

it.each(['0', '257', '-1', '1.5', '1e1', 'many'])('refuses WORKER_THREADS %s', (text) => {
  expect(() => countWorkers(undefined, { WORKER_THREADS: text }, linux)).toThrow(`got "${text}"`)
})
