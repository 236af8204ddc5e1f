import { describe, expect, it } from 'vitest'
import { compileListenerTable } from './listener-table.ts'

const find = compileListenerTable([
  { hostname: undefined, target: 'all' },
  { hostname: '*.example.com', target: 'example' },
  { hostname: '*.api.example.com', target: 'api' },
  { hostname: 'one.api.example.com', target: 'one' },
  { hostname: 'ONE.api.example.com', target: 'one again' },
])

describe('compileListenerTable', () => {
  it.each([
    ['one.api.example.com', 'one'],
    ['One.Api.example.com.:8443', 'one'],
    ['two.api.example.com', 'api'],
    ['a.b.api.example.com', 'api'],
    ['api.example.com', 'example'],
    ['example.com', 'all'],
    ['.example.com', 'all'],
    ['', 'all'],
  ])('chooses for %j the listener %j', (host, listener) => {
    expect(find(host)).toBe(listener)
  })

  it('returns no listener for an unmatched host', () => {
    expect(compileListenerTable([{ hostname: 'a.com', target: 1 }])('b.com')).toBeUndefined()
  })
})
