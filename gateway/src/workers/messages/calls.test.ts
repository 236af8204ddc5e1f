import { MessageChannel } from 'node:worker_threads'
import { afterEach, expect, it } from 'vitest'
import { ConfigRejected } from '../../config/config-rejected.ts'
import { createCalls, type Handlers } from './calls.ts'

const open: (() => void)[] = []

function linked(handlers: Handlers) {
  const { port1, port2 } = new MessageChannel()
  open.push(() => port1.close())
  createCalls(port2, handlers)
  return createCalls(port1, {})
}

afterEach(() => {
  for (const close of open.splice(0)) close()
})

it('returns the results of handlers, in any order', async () => {
  const first = Promise.withResolvers<string>()
  const calls = linked({ wait: () => first.promise, double: (value: number) => value * 2 })
  const waiting = calls.call('wait', undefined)
  expect(await calls.call('double', 21)).toBe(42)
  first.resolve('late')
  expect(await waiting).toBe('late')
})

it('rejects with the error of a handler, and retains the issues of a configuration', async () => {
  const calls = linked({
    fail() {
      throw new Error('no memory')
    },
    reject() {
      throw new ConfigRejected(['one', 'two'])
    },
  })
  await expect(calls.call('fail', undefined)).rejects.toThrow('no memory')
  const rejection = await calls.call('reject', undefined).catch((error: unknown) => error)
  expect(rejection).toBeInstanceOf(ConfigRejected)
  expect(rejection).toMatchObject({ issues: ['one', 'two'] })
  await expect(calls.call('absent', undefined)).rejects.toThrow('unknown call absent')
})

it('rejects calls in progress and later ones after its end', async () => {
  const calls = linked({ never: () => new Promise(() => {}) })
  const waiting = calls.call('never', undefined)
  calls.end(new Error('data plane 1 ended'))
  await expect(waiting).rejects.toThrow('data plane 1 ended')
  await expect(calls.call('never', undefined)).rejects.toThrow('data plane 1 ended')
})
