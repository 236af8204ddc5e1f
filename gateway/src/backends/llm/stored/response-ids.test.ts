import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createResponseIds } from './response-ids.ts'

const key = 'a session key of some replicas, 32'
const context = { sessionKey: key, processKey: new Uint8Array(32) }
const ids = createResponseIds(context)
const stored = { id: 'resp_1', requestModel: 'm', configuredModel: 'c', place: 'p' }

describe('an id of a stored response', () => {
  it('is read by every process with the same session key', () => {
    const text = ids.seal(stored, 'alice')
    expect(
      createResponseIds({ ...context, processKey: new Uint8Array(32).fill(1) }).open(text, 'alice'),
    ).toEqual(stored)
    expect(createResponseIds({ ...context, sessionKey: `${key}x` }).open(text, 'alice')).toBeUndefined()
    expect(createResponseIds({ ...context, sessionKey: undefined }).open(text, 'alice')).toBeUndefined()
  })

  it('is the same each time, and different for each response and owner', () => {
    const texts = [stored, stored, { ...stored, id: 'resp_2' }].map((each) => ids.seal(each, 'alice'))
    expect(new Set([...texts, ids.seal(stored, 'bob')]).size).toBe(3)
  })

  it('is not read by other owners', () => {
    const text = ids.seal(stored, 'alice')
    expect(ids.open(text, 'bob')).toBeUndefined()
    expect(ids.open(text, '')).toBeUndefined()
  })

  it('contains neither the id of the provider nor the owner', () => {
    expect(ids.seal(stored, 'alice')).toMatch(/^resp_[\w-]{100,}$/)
  })

  it('is not read after any change', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), fc.string({ minLength: 1, maxLength: 1 }), (text, at, letter) => {
        expect(ids.open(text, 'alice')).toBeUndefined()
        const sealed = ids.seal(stored, 'alice')
        const index = at % sealed.length
        const changed = sealed.slice(0, index) + letter + sealed.slice(index + 1)
        expect(changed === sealed || ids.open(changed, 'alice') === undefined).toBe(true)
      }),
    )
  })
})
