import { expect, it } from 'vitest'
import { hideCredentials } from './hidden-credential.ts'

const hidden = (text: string, credential?: string) =>
  hideCredentials(Buffer.from(text), credential === undefined ? [] : [credential]).toString()

it.each([
  ['key k/1+2= refused, k/1+2=', 'key [hidden] refused, [hidden]'],
  ['{"error":"k\\/1+2="}', '{"error":"[hidden]"}'],
  ['/path?key=k%2F1%2B2%3D', '/path?key=[hidden]'],
  ['k/1', 'k/1'],
])('%s becomes %s', (text, expected) => {
  expect(hidden(text, 'k/1+2=')).toBe(expected)
})

it('characters that JSON escapes are found', () => {
  const credential = 'a"b\\c'
  expect(hidden(JSON.stringify({ message: `no ${credential}` }), credential)).toBe(
    '{"message":"no [hidden]"}',
  )
})

it('bytes without the credential are unchanged', () => {
  const bytes = Buffer.from([0xff, 0x00, 0x41])
  for (const credentials of [undefined, [], [''], ['A key']])
    expect(hideCredentials(bytes, credentials)).toEqual(bytes)
})
