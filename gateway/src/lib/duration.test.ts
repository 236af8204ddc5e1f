import { expect, it } from 'vitest'
import { parseDuration } from './duration.ts'

it.each([
  ['500ms', 500],
  ['10s', 10_000],
  ['1h30m', 5_400_000],
  ['1.5s', 1_500],
  ['1d', 86_400_000],
  ['0s', 0],
  ['1h2m3s4ms', 3_723_004],
])('reads %s', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

it.each([
  '',
  '10',
  '-5s',
  '+5s',
  '5 s',
  '5S',
  '10m5m',
  '5s1h',
  '1e3s',
  's',
  '5s ',
  `${'9'.repeat(40)}h`,
  '1h30',
])('refuses "%s"', (text) => {
  expect(parseDuration(text)).toBeUndefined()
})
