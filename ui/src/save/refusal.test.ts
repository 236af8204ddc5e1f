import { expect, it } from 'vitest'
import { ApiError } from '../api/client.ts'
import { mistakesIn, refusalOf } from './refusal.ts'

it.each<[string, unknown, readonly unknown[]]>([
  [
    '/etc/t.yaml:29:18: llm.models[3].params.baseUrl: expected an address, got the string "abc"\n/etc/t.yaml:30:9: llm.models[3].params.foo: unknown key `foo`; known here: model, apiKey',
    { name: 'x', params: { baseUrl: 'abc', foo: 1 } },
    [
      [['params', 'baseUrl'], 'expected an address, got the string "abc"'],
      [['params', 'foo'], 'unknown key `foo`; known here: model, apiKey'],
    ],
  ],
  [
    'llm.policies.localRateLimit[1].unit: is required: one of Seconds, Minutes',
    [{ requests: 1, unit: 'Minutes' }, { requests: 1 }],
    [[[1, 'unit'], 'is required: one of Seconds, Minutes']],
  ],
  [
    'gateways.g2.port: expected at most 65535',
    { name: 'g2', port: 99_999 },
    [[['port'], 'expected at most 65535']],
  ],
  [
    'gateways["a.b"].port: expected at most 65535',
    { name: 'a.b', port: 99_999 },
    [[['port'], 'expected at most 65535']],
  ],
  [
    'routes[1].matches[0].path: exactly one of exact, regex is allowed here',
    { name: 'r', matches: [{ path: { exact: 'x', regex: '(' } }] },
    [[['matches', 0, 'path'], 'exactly one of exact, regex is allowed here']],
  ],
  ['llm.models[3].provider: is required: a string', { name: 'x' }, [[['provider'], 'is required: a string']]],
  [
    'llm.model resources require value.name',
    { provider: 'echo' },
    [[['name'], 'llm.model resources require value.name']],
  ],
  ['the database is not reachable', { name: 'x' }, []],
])('finds the field of %s', (message, value, expected) => {
  expect(mistakesIn(message, value).map(({ path, message: text }) => [path, text])).toEqual(expected)
})

it('a refusal omits the line of a file that was not written', () => {
  const error = new ApiError('/etc/t.yaml:9:11: gateways.g.port: expected at most 65535', 500)
  expect(refusalOf(error, {}).message).toBe('gateways.g.port: expected at most 65535')
})

it('an error that is no refusal is thrown again', () => {
  expect(() => refusalOf(new TypeError('bug'), {})).toThrow('bug')
})
