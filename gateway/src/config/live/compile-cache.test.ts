import { describe, expect, it } from 'vitest'
import { createCompileCache } from './compile-cache.ts'

describe('createCompileCache', () => {
  it('creates a result once per node and purpose, including undefined results', () => {
    const { cached } = createCompileCache(() => '')
    const node = {}
    let calls = 0
    const count = () => {
      calls += 1
      return undefined
    }
    cached(node, 'a', count)
    cached(node, 'a', count)
    cached(node, 'b', count)
    cached({}, 'a', count)
    expect(calls).toBe(3)
  })

  it('retains state by name while it is referenced', () => {
    const { retained } = createCompileCache(() => '')
    const bucket = retained('limit', () => ({ level: 3 }))
    expect(retained('limit', () => ({ level: 9 }))).toBe(bucket)
    expect(retained('other', () => ({ level: 9 })).level).toBe(9)
  })
})

describe('files of compile results', () => {
  function folder(texts: Record<string, string>) {
    const reads: string[] = []
    const cache = createCompileCache((path) => {
      reads.push(path)
      const text = texts[path]
      if (text === undefined) throw new Error(`no file ${path}`)
      return text
    })
    return { cache, texts, reads }
  }

  it('reads a file once, and creates its results again after an eviction', () => {
    const { cache, texts, reads } = folder({ key: 'one' })
    const node = {}
    const result = () => cache.cached(node, 'key', () => cache.readFile('key').toUpperCase())
    expect([result(), result()]).toEqual(['ONE', 'ONE'])
    expect(reads).toEqual(['key'])
    texts['key'] = 'two'
    expect(result()).toBe('ONE')
    cache.evictFile('key')
    expect(result()).toBe('TWO')
    expect(reads).toEqual(['key', 'key'])
  })

  it('creates an outer result again, and reuses results of other files', () => {
    const { cache, texts } = folder({ inner: 'i', other: 'o' })
    const node = {}
    let others = 0
    const outer = () =>
      cache.cached(node, 'outer', () => `<${cache.cached(node, 'inner', () => cache.readFile('inner'))}>`)
    const other = () =>
      cache.cached(node, 'other', () => {
        others += 1
        return cache.readFile('other')
      })
    expect(outer() + other()).toBe('<i>o')
    texts['inner'] = 'j'
    cache.evictFile('inner')
    expect(outer() + other()).toBe('<j>o')
    expect(others).toBe(1)
  })

  it('reports the files in use, including those of cached results, and evicts unwatched files', () => {
    const { cache, reads } = folder({ a: '1', b: '2' })
    const node = {}
    cache.begin(new Set())
    cache.cached(node, 'a', () => cache.readFile('a'))
    cache.readFile('b')
    expect([...cache.files()]).toEqual([
      ['a', '1'],
      ['b', '2'],
    ])
    cache.begin(new Set(['a']))
    cache.cached(node, 'a', () => cache.readFile('a'))
    expect([...cache.files().keys()]).toEqual(['a'])
    cache.readFile('b')
    expect(reads).toEqual(['a', 'b', 'b'])
  })

  it('reads a file of an aborted configuration again', () => {
    const { cache, texts } = folder({ running: 'r', certificate: 'broken' })
    const watched = new Set(['running'])
    cache.begin(watched)
    expect([cache.readFile('running'), cache.readFile('certificate')]).toEqual(['r', 'broken'])
    texts['running'] = 'changed, reported by its watcher'
    texts['certificate'] = 'repaired'
    cache.begin(watched)
    expect([cache.readFile('running'), cache.readFile('certificate')]).toEqual(['r', 'repaired'])
  })

  it('reads a file of requests at each call, and does not report it', () => {
    const { cache, texts } = folder({ token: 'one' })
    const read = cache.cached({}, 'token', () => () => cache.readFileNow('token'))
    expect(read()).toBe('one')
    texts['token'] = 'two'
    expect(read()).toBe('two')
    expect([...cache.files()]).toEqual([])
  })

  it('caches nothing if the creation throws', () => {
    const { cache, texts } = folder({})
    const node = {}
    const result = () => cache.cached(node, 'key', () => cache.readFile('late'))
    expect(result).toThrow('no file late')
    texts['late'] = 'here'
    expect(result()).toBe('here')
  })
})
