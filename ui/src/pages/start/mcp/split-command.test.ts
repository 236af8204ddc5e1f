import { expect, it } from 'vitest'
import { splitCommand } from './split-command.ts'

it.each([
  ['npx -y  server', ['npx', '-y', 'server']],
  [`node "a b.mjs" --x='1 2'`, ['node', 'a b.mjs', '--x=1 2']],
  ['', []],
])('splits %j', (text, words) => {
  expect(splitCommand(text)).toEqual(words)
})
