import { expect, it } from 'vitest'
import { parseOptions } from './options.ts'

it('defaults are five rounds of two seconds without peers', () => {
  expect(parseOptions([])).toMatchObject({
    rounds: 5,
    secondsPerRound: 2,
    peers: [],
    placement: {},
    connections: undefined,
  })
})

it('a quick run has three short rounds unless the command line has others', () => {
  expect(parseOptions(['--quick'])).toMatchObject({ rounds: 3, secondsPerRound: 0.3 })
  expect(parseOptions(['--quick', '--rounds', '1'])).toMatchObject({ rounds: 1, secondsPerRound: 0.3 })
})

it('several peers, pinned CPUs and connections are read', () => {
  const args = ['--peer', 'a=run a', '--peer', 'b=run', '--pin', 'gateway=1', '--connections', '32']
  expect(parseOptions(args)).toMatchObject({
    peers: [
      { name: 'a', command: ['run', 'a'] },
      { name: 'b', command: ['run'] },
    ],
    placement: { gateway: '1' },
    connections: 32,
  })
})

it.each([
  [['--rounds', 'x'], '--rounds must be a number above 0, got "x"'],
  [['--seconds', '0'], '--seconds must be a number above 0, got "0"'],
  [['--workers', '1.5'], '--workers must be a whole number, got "1.5"'],
  [['--peer', 'a=x', '--peer', 'a=y'], 'there are two peers with the name a: name each once'],
  [['--round', '3'], /Unknown option '--round'/],
])('%j is refused', (args, message) => {
  expect(() => parseOptions(args)).toThrow(message)
})
