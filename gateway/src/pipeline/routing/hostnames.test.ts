import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  attachedHostnames,
  createHostnameTable,
  hostnameMistake,
  intersectHostnames,
  isHostname,
  normaliseHost,
  valueOfHostname,
  visitHost,
} from './hostnames.ts'

describe('normaliseHost', () => {
  it.each([
    ['Example.COM', 'example.com'],
    ['example.com:8080', 'example.com'],
    ['example.com.', 'example.com'],
    ['example.com.:443', 'example.com'],
    ['[::1]:80', '[::1]'],
    ['[2001:DB8::1]', '[2001:db8::1]'],
    ['', ''],
    [':80', ''],
    ['.', ''],
    ['[', ''],
  ])('reads %j as %j', (host, name) => {
    expect(normaliseHost(host)).toBe(name)
  })

  it('ignores a host longer than any name', () => {
    expect(normaliseHost(`${'a.'.repeat(10_000)}example.com`)).toBe('')
  })
})

describe('hostnameMistake', () => {
  it.each([
    'example.com',
    '*.example.com',
    '*',
    'localhost',
    '10.0.0.1',
    '[::1]',
    'EXAMPLE.com.',
    'a_b.test',
  ])('accepts %j', (hostname) => {
    expect(hostnameMistake(hostname)).toBeUndefined()
    expect(isHostname(hostname)).toBe(true)
  })

  it.each([
    ['example.com:80', 'port'],
    ['a.*.com', '"*" may only'],
    ['*example.com', '"*" may only'],
    ['exa mple.com', 'must be a name'],
    ['-a.com', 'must be a name'],
    ['a..com', 'must be a name'],
    ['http://a.com', 'must be a name'],
    ['bücher.example', 'must be a name'],
    ['a'.repeat(300), 'longer than'],
  ])('reports the mistake in %j', (hostname, words) => {
    expect(hostnameMistake(hostname)).toContain(words)
  })
})

describe('intersectHostnames', () => {
  it.each([
    [undefined, undefined, '*'],
    ['', 'a.com', 'a.com'],
    ['*', '*.a.com', '*.a.com'],
    ['a.com', 'A.com.', 'a.com'],
    ['*.a.com', 'x.a.com', 'x.a.com'],
    ['*.a.com', 'x.y.a.com', 'x.y.a.com'],
    ['x.a.com', '*.a.com', 'x.a.com'],
    ['*.a.com', '*.b.a.com', '*.b.a.com'],
    ['*.a.com', 'a.com', undefined],
    ['*.a.com', 'xa.com', undefined],
    ['a.com', 'b.com', undefined],
    ['*.a.com', '*.b.com', undefined],
  ])('of %j and %j is %j', (one, other, common) => {
    expect(intersectHostnames(one, other)).toBe(common)
    expect(intersectHostnames(other, one)).toBe(common)
  })

  it('contains the hosts that both hostnames match', () => {
    const labels = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 3 })
    const hostname = fc
      .tuple(fc.boolean(), labels)
      .map(([wild, parts]) => (wild ? ['*', ...parts] : parts).join('.'))
    const matches = (name: string | undefined, host: string) => {
      const table = createHostnameTable<true>()
      if (name !== undefined) valueOfHostname(table, name, () => true)
      return visitHost(table, host, (value) => value, undefined) === true
    }
    fc.assert(
      fc.property(hostname, hostname, labels, (one, other, parts) => {
        const host = parts.join('.')
        const common = intersectHostnames(one, other)
        expect(matches(common, host)).toBe(matches(one, host) && matches(other, host))
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('attachedHostnames', () => {
  it('returns the intersection of route and listener', () => {
    expect(attachedHostnames('*.a.com', ['x.a.com', 'b.com', 'X.a.com'])).toEqual(['x.a.com'])
  })

  it('returns the hostnames of the listener for a route without hostnames', () => {
    expect(attachedHostnames('*.a.com', [])).toEqual(['*.a.com'])
    expect(attachedHostnames(undefined, [])).toEqual(['*'])
  })

  it('returns undefined for an empty intersection', () => {
    expect(attachedHostnames('a.com', ['b.com'])).toBeUndefined()
  })
})
