import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../lib/json/json.ts'
import { createValueCodec, type FieldPath, readEncryptionKeys } from './value-codec.ts'

const key = Buffer.alloc(32, 1)
const otherKey = Buffer.alloc(32, 2)

function codecWith(paths: readonly FieldPath[], withKey: Buffer | 'no key' = key) {
  return createValueCodec(
    { current: withKey === 'no key' ? undefined : withKey, previous: [] },
    () => () => paths,
  )
}

describe('values at rest', () => {
  it('are plain JSON without secrets', () => {
    const value = { b: 1, a: ['x', null] }
    expect(codecWith([]).encode('k', 'i', value)).toBe('{"b":1,"a":["x",null]}')
    expect(codecWith([['b']], 'no key').encode('k', 'i', value)).toBe('{"b":1,"a":["x",null]}')
  })

  it('are decrypted with any key and encrypted with the current one', () => {
    const paths = () => () => [['key']]
    const value = { key: 'sk-1' }
    const old = codecWith([['key']], otherKey).encode('k', 'i', value)
    const rotating = createValueCodec({ current: key, previous: [Buffer.alloc(32, 3), otherKey] }, paths)
    expect(rotating.decode('k', 'i', old)).toEqual({ kind: 'value', value, isOld: true })
    const anew = rotating.encode('k', 'i', value)
    expect(rotating.decode('k', 'i', anew)).toEqual({ kind: 'value', value })
    expect(codecWith([]).decode('k', 'i', anew)).toEqual({ kind: 'value', value })
    expect(codecWith([], otherKey).decode('k', 'i', anew)).toMatchObject({ kind: 'unreadable' })
  })

  it('encrypt secret fields of any type and restore them', () => {
    const value: JsonObject = {
      text: 'sk-1',
      number: 42,
      nothing: null,
      object: { a: ['sk-2'] },
      list: [{ k: 'sk-3' }],
    }
    const paths = [['text'], ['number'], ['nothing'], ['object'], ['list', 0, 'k']]
    const text = codecWith(paths).encode('k', 'i', value)
    const stored: JsonObject = JSON.parse(text)
    for (const name of ['text', 'number', 'nothing', 'object']) expect(stored[name]).toMatch(/^enc:v1:/)
    expect(text).not.toContain('sk-')
    expect(codecWith(paths).decode('k', 'i', text)).toEqual({ kind: 'value', value })
  })

  it('ignore paths without a field, or into an encrypted field', () => {
    const value: JsonObject = { a: { b: 'x' }, list: ['y'] }
    const paths = [
      ['a'],
      ['a', 'b'],
      ['missing'],
      ['a', 'b', 'c'],
      ['list', 7],
      ['list', 'length'],
      ['constructor'],
      [],
    ]
    const text = codecWith(paths).encode('k', 'i', value)
    expect(JSON.parse(text)).toEqual({ a: expect.stringMatching(/^enc:v1:/), list: ['y'] })
    expect(codecWith(paths).decode('k', 'i', text)).toEqual({ kind: 'value', value })
  })

  it('encrypt a field named __proto__', () => {
    const value: JsonObject = JSON.parse('{"__proto__":{"key":"sk-1"},"enc":"enc:v1:x"}')
    const codec = codecWith([['__proto__', 'key']])
    const text = codec.encode('k', 'i', value)
    expect(text).not.toContain('sk-1')
    const decoded = codec.decode('k', 'i', text)
    expect(decoded.kind === 'value' && JSON.stringify(decoded.value)).toBe(JSON.stringify(value))
  })

  it('accept an index of a list as a number or as text', () => {
    const value: JsonObject = { list: ['sk-1'] }
    const text = codecWith([['list', '0']]).encode('k', 'i', value)
    expect(codecWith([['list', 0]]).decode('k', 'i', text)).toEqual({ kind: 'value', value })
  })

  it.each([
    ['another key', otherKey, 'k', 'i', /encryptionKey is not the key/],
    ['no key', 'no key' as const, 'k', 'i', /encryptionKey is not set/],
    ['another kind', key, 'other', 'i', /or the row was altered/],
    ['another id', key, 'k', 'other', /or the row was altered/],
  ])('cannot be decrypted with %s', (_, readKey, kind, id, reason) => {
    const text = codecWith([['key']]).encode('k', 'i', { key: 'sk-1', name: 'visible' })
    expect(codecWith([], readKey).decode(kind, id, text)).toEqual({
      kind: 'unreadable',
      reason: expect.stringMatching(reason),
      partial: { key: expect.stringMatching(/^http:\/\/[0-9a-f]{48}\.invalid\/$/), name: 'visible' },
    })
  })

  it('cannot be decrypted after a change of a byte, truncation, or a move to another field', () => {
    const codec = codecWith([['key']])
    const stored: JsonObject = JSON.parse(codec.encode('k', 'i', { key: 'sk-1' }))
    const hidden = String(stored['key'])
    for (let at = 'enc:v1:'.length; at < hidden.length; at += 1) {
      const changed = hidden.slice(0, at) + (hidden[at] === 'A' ? 'Q' : 'A') + hidden.slice(at + 1)
      expect(codec.decode('k', 'i', JSON.stringify({ key: changed })).kind).toBe('unreadable')
      expect(codec.decode('k', 'i', JSON.stringify({ key: hidden.slice(0, at) })).kind).toBe('unreadable')
    }
    expect(codec.decode('k', 'i', JSON.stringify({ other: hidden })).kind).toBe('unreadable')
  })

  it('of a later format are unreadable', () => {
    const decoded = codecWith([]).decode('k', 'i', '{"key":"enc:v2:AAAA"}')
    expect(decoded).toEqual({ kind: 'unreadable', reason: expect.stringContaining('newer version') })
  })

  it.each(['', '{', '[]', 'null', '"x"', '1'])('that are not JSON objects are unreadable: %s', (text) => {
    expect(codecWith([]).decode('k', 'i', text).kind).toBe('unreadable')
  })

  it('are restored for any content, with and without a key', () => {
    const string = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((rest) => `enc:v1:${rest}`),
      fc.nat(12).map((version) => `enc:v${version}:enc:v1:`),
    )
    const json = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        string,
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (number === 0 ? 0 : number)),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.oneof(string, fc.constant('__proto__')), tie('value'), { maxKeys: 3 }),
      ),
    })).value
    const path = fc.array(fc.oneof(fc.constantFrom('a', 'b', '__proto__'), fc.nat(2)), { maxLength: 3 })
    const fields = fc.record({ a: json, b: json }, { requiredKeys: [] })
    fc.assert(
      fc.property(fields, fc.array(path), fc.boolean(), (value, paths, hasKey) => {
        const sent: JsonObject = JSON.parse(JSON.stringify(value))
        const codec = codecWith(paths, hasKey ? key : 'no key')
        const decoded = codec.decode('k', 'i', codec.encode('k', 'i', sent))
        expect(decoded.kind === 'value' && JSON.stringify(decoded.value)).toBe(JSON.stringify(sent))
      }),
    )
  })
})

describe('the encryption key', () => {
  const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index))

  it.each(['hex', 'base64', 'base64url'] as const)('is read from %s', (encoding) => {
    expect(readEncryptionKeys({ encryptionKey: bytes.toString(encoding) }).current).toEqual(bytes)
  })

  it('may be missing', () => {
    expect(readEncryptionKeys({})).toEqual({ current: undefined, previous: [] })
  })

  it.each([
    '',
    'short',
    'f'.repeat(63),
    'g'.repeat(64),
    `${'A'.repeat(44)}`,
    '$ENCRYPTION_KEY',
    ' '.repeat(32),
  ])('is refused if it is not 32 bytes, without quoting it: %j', (text) => {
    expect(() => readEncryptionKeys({ previousEncryptionKeys: [text] })).toThrow(
      'config.database.encryptionKey must be 32 bytes, as 64 hex digits or as base64',
    )
  })
})
