import { expect, it } from 'vitest'
import { duplicateOf } from './duplicate.ts'

it('a copy has another name, and no secrets', () => {
  const value = {
    id: 'a',
    name: 'gpt',
    params: { apiKey: '***', baseUrl: 'https://***@h' },
    list: [{ key: '***', x: 1 }],
  }
  expect(duplicateOf({ kind: 'llm.model', id: '1', value })).toEqual({
    name: 'gpt-copy',
    params: {},
    list: [{ x: 1 }],
  })
})
