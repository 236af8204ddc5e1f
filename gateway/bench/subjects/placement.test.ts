import { expect, it } from 'vitest'
import { describePlacement, onCpus, parsePlacement } from './placement.ts'

it.each([
  ['load=0,gateway=1', { load: '0', gateway: '1' }],
  ['load=0,upstream=0,gateway=1,2', { load: '0', upstream: '0', gateway: '1,2' }],
  ['gateway=2-5,8', { gateway: '2-5,8' }],
])('%s assigns CPUs to roles', (text, placement) => {
  expect(parsePlacement(text)).toEqual(placement)
})

it.each(['', '0', 'gateway', 'gateway=', 'relay=1', 'gateway=a', 'load=0,,gateway=1'])(
  'the placement %j is refused with an example',
  (text) => {
    expect(() => parsePlacement(text)).toThrow(/--pin must assign .* for example "load=0,.*, got "/)
  },
)

it('a command runs through taskset only if its role has CPUs', () => {
  expect(onCpus(undefined, ['node', 'a.ts'])).toEqual(['node', 'a.ts'])
  expect(onCpus('1,2', ['node', 'a.ts'])).toEqual(['taskset', '-c', '1,2', 'node', 'a.ts'])
})

it('a placement is described in the order of roles', () => {
  expect(describePlacement({ gateway: '1,2', load: '0' })).toBe('load 0, gateway 1,2')
  expect(describePlacement({})).toBe('')
})
