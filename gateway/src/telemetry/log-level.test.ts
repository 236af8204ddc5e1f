import { expect, it } from 'vitest'
import { logLevelMistake, logLevelOf } from './log-level.ts'

it.each<[string | string[] | undefined, string]>([
  [undefined, 'info'],
  ['debug', 'debug'],
  ['WARN', 'warn'],
  ['trace', 'debug'],
  ['error,agent_core=trace', 'error'],
  [['agent_core=trace', 'warn'], 'warn'],
  ['agent_core=trace', 'info'],
])('level %j is %s', (config, expected) => {
  expect(logLevelOf(config)).toBe(expected)
})

it.each<[string | string[], string | undefined]>([
  ['info', undefined],
  [['info', 'a=debug'], undefined],
  ['verbose', 'expected one of trace, debug, info, warn, error, or module=level, got "verbose"'],
  ['a=loud', 'expected one of trace, debug, info, warn, error, or module=level, got "a=loud"'],
  ['info,warn', 'must have one level without a module'],
])('level %j is checked', (config, expected) => {
  expect(logLevelMistake(config)).toBe(expected)
})
