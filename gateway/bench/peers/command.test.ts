import { expect, it } from 'vitest'
import { parsePeer, splitWords } from './command.ts'

it.each([
  ['agentgateway=agentgateway', { name: 'agentgateway', command: ['agentgateway'] }],
  ['a b=/opt/a b --flag=1', { name: 'a b', command: ['/opt/a', 'b', '--flag=1'] }],
  ['x="/opt/my gateway/run" -p {{port}}', { name: 'x', command: ['/opt/my gateway/run', '-p', '{{port}}'] }],
])('%s is a name and a command', (text, peer) => {
  expect(parsePeer(text)).toEqual(peer)
})

it.each(['', 'agentgateway', '=agentgateway', '-x=run'])('the peer %j without a name is refused', (text) => {
  expect(() => parsePeer(text)).toThrow('--peer must be "NAME=COMMAND", for example --peer "agentgateway=/')
})

it('a peer without a command, and one with an open quote, are refused', () => {
  expect(() => parsePeer('x=  ')).toThrow('the command of peer x is empty')
  expect(() => parsePeer('x="run')).toThrow('the command of peer x has an unclosed quote: "run')
})

it.each([
  ['  a   b ', ['a', 'b']],
  [`a'b c'd "e f"`, ['ab cd', 'e f']],
  [`"" '' a\\ b`, ['', '', 'a b']],
  [`"a\\"b" 'c\\d'`, ['a"b', 'c\\d']],
  ['', []],
])('the words of %j are separated as by a shell', (text, words) => {
  expect(splitWords(text)).toEqual(words)
})
