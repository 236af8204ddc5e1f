import { describe, expect, it } from 'vitest'
import type { Headers } from '../net/http/headers.ts'
import { checkHeaderModifier, compileHeaderModifier, type HeaderModifierConfig } from './header-modifier.ts'

function changed(config: HeaderModifierConfig, headers: Headers): Headers {
  compileHeaderModifier(config)(headers)
  return headers
}

function mistakesOf(config: HeaderModifierConfig): string[] {
  const found: string[] = []
  checkHeaderModifier(config, (path) => found.push(path.join('.')))
  return found
}

describe('a header modifier', () => {
  it('sets, adds and removes fields by their names in any case', () => {
    const config = { set: { 'X-A': '1' }, add: { 'x-B': '2' }, remove: ['X-C'] }
    const headers = { 'x-a': 'old', 'x-b': 'old', 'x-c': 'old', 'x-d': 'kept' }
    expect(changed(config, headers)).toEqual({ 'x-a': '1', 'x-b': 'old,2', 'x-d': 'kept' })
  })

  it('adds before it sets, so that a set value is the only one', () => {
    expect(changed({ set: { 'x-a': '1' }, add: { 'x-a': '2' } }, { 'x-a': 'old' })).toEqual({ 'x-a': '1' })
  })

  it('does not append to inherited properties', () => {
    expect(changed({ add: { constructor: 'x' } }, {})).toEqual({ constructor: 'x' })
  })

  it('adds to a missing field and to a list', () => {
    expect(changed({ add: { a: '1' } }, {})).toEqual({ a: '1' })
    expect(changed({ add: { 'set-cookie': 'c=3' } }, { 'set-cookie': ['a=1', 'b=2'] })).toEqual({
      'set-cookie': ['a=1', 'b=2', 'c=3'],
    })
  })
})

describe('checkHeaderModifier', () => {
  it.each([
    'Host',
    'content-length',
    'Transfer-Encoding',
    'connection',
    'a b',
    'a:b',
    '',
    'é',
    'proxy-authorization',
  ])('refuses the field "%s"', (field) => {
    expect(mistakesOf({ set: { [field]: 'x' }, add: { [field]: 'x' }, remove: [field] })).toHaveLength(3)
  })

  it.each(['a\r\nb', 'a\nb', 'a\0b', ' a', 'a ', '中'])('refuses the value %j', (text) => {
    expect(mistakesOf({ set: { 'x-a': text } })).toEqual(['set.x-a'])
  })

  it('accepts valid values', () => {
    expect(
      mistakesOf({ set: { 'X-A': 'a b\tc', 'x-empty': '' }, add: { 'x-b': '"' }, remove: ['x-c'] }),
    ).toEqual([])
  })
})
