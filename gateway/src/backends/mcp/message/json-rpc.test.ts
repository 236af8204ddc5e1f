import { describe, expect, it } from 'vitest'
import { errorText, isResponseTo, messageOf, readClientMessage } from './json-rpc.ts'

const kindOf = (text: string) => {
  const message = readClientMessage(text)
  return message.kind === 'malformed' ? message.code : message.kind
}

describe('a message of a client', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":1,"method":"ping"}', 'request'],
    ['{"jsonrpc":"2.0","id":"a","method":"x/unknown","params":{"new":[1]}}', 'request'],
    ['{"jsonrpc":"2.0","method":"notifications/initialized"}', 'notification'],
    ['{"jsonrpc":"2.0","id":3,"result":{}}', 'response'],
    ['{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}', 'response'],
    ['{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}', 'response'],
  ])('reads %s', (text, kind) => {
    expect(kindOf(text)).toBe(kind)
  })

  it.each([
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
    ['an empty body', '', -32700],
    ['broken JSON', '{"jsonrpc":"2.0"', -32700],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['no version', '{"id":1,"method":"ping"}', -32600],
    ['a null id', '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['an id of another kind', '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600],
    ['an id beyond all numbers', '{"jsonrpc":"2.0","id":1e400,"method":"ping"}', -32600],
    ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['a request with a result', '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', -32600],
    ['result and error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600],
    ['neither', '{"jsonrpc":"2.0","id":1}', -32600],
    ['params of another kind', '{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32600],
    ['a name twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', -32600],
    ['a name twice, once escaped', '{"jsonrpc":"2.0","id":1,"method":"a","m\\u0065thod":"b"}', -32600],
    [
      'a name twice far inside',
      '{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":[{"b":1,"b":2}]}}',
      -32600,
    ],
    ['nesting without end', `{"jsonrpc":"2.0","id":1,"method":"a","params":${'['.repeat(5_000)}`, -32700],
  ])('refuses %s', (_, text, code) => {
    expect(kindOf(text)).toBe(code)
  })

  it.each([
    '{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"Notifications":{}}}',
    '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourcesubscriptions":[]}}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","argument\u017f":{}}}',
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","URI":"b"}}',
    '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a","NAME":"b"}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a","taskID":"b"}}',
  ])('refuses names that a reader without case would take for others: %s', (text) => {
    expect(readClientMessage(text)).toMatchObject({ kind: 'malformed', code: -32600 })
  })

  it('lets parameters of unknown methods be named as they like', () => {
    expect(kindOf('{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"Name":1,"name":2}}')).toBe('request')
  })

  it('lets parameters of unknown notifications be named as they like', () => {
    const textOf = (method: string) =>
      JSON.stringify({ jsonrpc: '2.0', method, params: { Data: 1, data: 2 } })
    expect(readClientMessage(textOf('notifications/vendor/changed'))).toMatchObject({ kind: 'notification' })
    for (const method of ['notifications/message', 'notifications/tasks/status', 'notifications/cancelled'])
      expect(readClientMessage(textOf(method))).toMatchObject({ kind: 'malformed' })
  })

  it('lets arguments of tools be named as they like', () => {
    const text =
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"Name":1,"name":2}}}'
    expect(kindOf(text)).toBe('request')
  })

  it.each([
    ['{"jsonrpc":"2.0","id":12345678901234567890,"method":"a"}', '12345678901234567890'],
    ['{"jsonrpc":"2.0","id":"\\u0061","method":"a"}', '"a"'],
    ['{"jsonrpc":"2.0","id":7,"method":"a"}', '7'],
  ])('keeps the id as it was written: %s', (text, idText) => {
    expect(readClientMessage(text)).toMatchObject({ kind: 'request', idText })
  })

  it('names the id of a malformed request, so that the client can match the error', () => {
    expect(readClientMessage('{"jsonrpc":"1.0","id":5,"method":"a"}')).toMatchObject({ idText: '5' })
  })
})

describe('messages made here', () => {
  it('writes errors with and without data', () => {
    expect(JSON.parse(errorText('"x"', -32602, 'no', { why: 1 }))).toEqual({
      jsonrpc: '2.0',
      id: 'x',
      error: { code: -32602, message: 'no', data: { why: 1 } },
    })
    expect(JSON.parse(errorText('1', 5, 'no'))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: 5, message: 'no' },
    })
  })

  it('does not take a request of the server for a response with the same id', () => {
    expect(isResponseTo(messageOf({ jsonrpc: '2.0', id: 1, method: 'ping' }), 1)).toBe(false)
    expect(isResponseTo(messageOf({ jsonrpc: '2.0', id: 1, result: {} }), 1)).toBe(true)
    expect(isResponseTo(messageOf({ jsonrpc: '2.0', id: '1', result: {} }), 1)).toBe(false)
  })
})
