import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { prefixedNames, unwrapId, wrapId } from './names.ts'

const targets = ['a', 'b', 'a.b', 'everything-2']
const names = prefixedNames(targets)
const index = fc.nat(targets.length - 1)

describe('names of several targets', () => {
  it('resolve to their target for any name', () => {
    fc.assert(
      fc.property(index, fc.string(), (target, name) => {
        expect(names.locateName(names.nameOf(target, name))).toEqual({ index: target, name })
        expect(names.locateTask(names.taskOf(target, name))).toEqual({ index: target, name })
      }),
    )
  })

  it('lead back for names that look like those of another target', () => {
    for (const name of ['b_echo', '_echo', 'a_', '_', 'b+x', '']) {
      expect(names.locateName(names.nameOf(0, name))).toEqual({ index: 0, name })
    }
  })

  it('never meet', () => {
    fc.assert(
      fc.property(index, index, fc.string(), fc.string(), (one, other, first, second) => {
        const same = one === other && first === second
        expect(names.nameOf(one, first) === names.nameOf(other, second)).toBe(same)
        expect(names.uriOf(one, first) === names.uriOf(other, second)).toBe(same)
      }),
    )
  })

  it('lead nowhere without the name of a target in front', () => {
    for (const name of [
      'echo',
      '_echo',
      'c_echo',
      'A_echo',
      ' a_echo',
      'a',
      '',
      'a-b_echo',
      'constructor_x',
    ]) {
      expect(names.locateName(name)).toBeUndefined()
    }
  })
})

describe('resources of several targets', () => {
  it('lead back to their target, also those that hosts show in frames', () => {
    const uri = fc.oneof(
      fc.webUrl(),
      fc.string(),
      fc.webPath().map((path) => `ui://${path}`),
    )
    fc.assert(
      fc.property(index, uri, (target, name) => {
        expect(names.locateUri(names.uriOf(target, name))).toEqual({ index: target, name })
      }),
    )
  })

  it('preserve the scheme of UI resources', () => {
    expect(names.uriOf(0, 'ui://widget/x')).toBe('ui://a+widget/x')
    expect(names.uriOf(0, 'file:///x')).toBe('a+file:///x')
  })

  it('lead nowhere without the name of a target in front', () => {
    for (const uri of ['file:///x', 'c+file:///x', '+x', 'ui://widget', 'ui://c+widget', 'ui://+x']) {
      expect(names.locateUri(uri)).toBeUndefined()
    }
  })
})

describe('ids of servers', () => {
  const id = fc.oneof(fc.string(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))

  it('come back as they were, with their target', () => {
    fc.assert(
      fc.property(index, id, (target, value) => {
        const text = JSON.stringify(value)
        const wrapped: unknown = JSON.parse(wrapId(target, text))
        expect(unwrapId(wrapped, targets.length)).toEqual({ index: target, name: text })
      }),
    )
  })

  it('keep numbers that cannot be read exactly', () => {
    const wrapped: unknown = JSON.parse(wrapId(1, '12345678901234567890'))
    expect(unwrapId(wrapped, 2)).toEqual({ index: 1, name: '12345678901234567890' })
  })

  it.each([
    1,
    null,
    '',
    '1',
    '0:',
    '9:1',
    '-1:1',
    '0:{}',
    '0:[1]',
    '0:1,"x":2',
    '0:"a"b"',
    '0:true',
    'x:1',
    '0:1e',
  ])('are not taken for ours when made up: %j', (value) => {
    expect(unwrapId(value, 2)).toBeUndefined()
  })

  it('never break out of the JSON they are put into', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const located = unwrapId(`0:${text}`, 1)
        if (located) expect(['string', 'number']).toContain(typeof JSON.parse(located.name))
      }),
    )
  })
})
