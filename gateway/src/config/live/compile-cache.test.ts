import { describe, expect, it } from 'vitest'
import { createCompileMemory } from './compile-cache.ts'

describe('createCompileMemory', () => {
  it('computes once per node and purpose, undefined results included', () => {
    const { memo } = createCompileMemory(() => '')
    const node = {}
    let calls = 0
    const count = () => {
      calls += 1
      return undefined
    }
    memo(node, 'a', count)
    memo(node, 'a', count)
    memo(node, 'b', count)
    memo({}, 'a', count)
    expect(calls).toBe(3)
  })

  it('keeps state under its name while somebody holds it', () => {
    const { keep } = createCompileMemory(() => '')
    const bucket = keep('limit', () => ({ level: 3 }))
    expect(keep('limit', () => ({ level: 9 }))).toBe(bucket)
    expect(keep('other', () => ({ level: 9 })).level).toBe(9)
  })
})

describe('files of what is compiled', () => {
  function folder(texts: Record<string, string>) {
    const reads: string[] = []
    const memory = createCompileMemory((path) => {
      reads.push(path)
      const text = texts[path]
      if (text === undefined) throw new Error(`no file ${path}`)
      return text
    })
    return { memory, texts, reads }
  }

  it('reads a file once, and a result made of it is made again when the file is forgotten', () => {
    const { memory, texts, reads } = folder({ key: 'one' })
    const node = {}
    const result = () => memory.memo(node, 'key', () => memory.readFile('key').toUpperCase())
    expect([result(), result()]).toEqual(['ONE', 'ONE'])
    expect(reads).toEqual(['key'])
    texts['key'] = 'two'
    expect(result()).toBe('ONE')
    memory.forgetFile('key')
    expect(result()).toBe('TWO')
    expect(reads).toEqual(['key', 'key'])
  })

  it('makes a result around another again, and leaves results of other files alone', () => {
    const { memory, texts } = folder({ inner: 'i', other: 'o' })
    const node = {}
    let others = 0
    const outer = () =>
      memory.memo(node, 'outer', () => `<${memory.memo(node, 'inner', () => memory.readFile('inner'))}>`)
    const other = () =>
      memory.memo(node, 'other', () => {
        others += 1
        return memory.readFile('other')
      })
    expect(outer() + other()).toBe('<i>o')
    texts['inner'] = 'j'
    memory.forgetFile('inner')
    expect(outer() + other()).toBe('<j>o')
    expect(others).toBe(1)
  })

  it('tells the files in use, of remembered results too, and forgets those that nobody watches', () => {
    const { memory, reads } = folder({ a: '1', b: '2' })
    const node = {}
    memory.begin(new Set())
    memory.memo(node, 'a', () => memory.readFile('a'))
    memory.readFile('b')
    expect([...memory.files()]).toEqual([
      ['a', '1'],
      ['b', '2'],
    ])
    memory.begin(new Set(['a']))
    memory.memo(node, 'a', () => memory.readFile('a'))
    expect([...memory.files().keys()]).toEqual(['a'])
    memory.readFile('b')
    expect(reads).toEqual(['a', 'b', 'b'])
  })

  it('reads a file anew that a configuration led to which was given up', () => {
    const { memory, texts } = folder({ running: 'r', certificate: 'broken' })
    const watched = new Set(['running'])
    memory.begin(watched)
    expect([memory.readFile('running'), memory.readFile('certificate')]).toEqual(['r', 'broken'])
    texts['running'] = 'changed, which its watcher will tell'
    texts['certificate'] = 'mended'
    memory.begin(watched)
    expect([memory.readFile('running'), memory.readFile('certificate')]).toEqual(['r', 'mended'])
  })

  it('keeps nothing of a result that could not be made', () => {
    const { memory, texts } = folder({})
    const node = {}
    const result = () => memory.memo(node, 'key', () => memory.readFile('late'))
    expect(result).toThrow('no file late')
    texts['late'] = 'here'
    expect(result()).toBe('here')
  })
})
