import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import { parseRequestTarget } from '../../lib/request-target.ts'
import { checkPathChange, compilePathChange, type PathChange } from './path.ts'

/** What a change makes of a request for `path`. */
function changed(change: PathChange, path: string, matchedPrefix: string): string {
  const target = parseRequestTarget(path)
  const exchange = fixtureExchange({
    path: target?.path ?? '',
    trailingSlash: target?.trailingSlash === true,
  })
  return compilePathChange(change)({
    ...exchange,
    route: { target: { name: 'route' }, prefix: matchedPrefix },
  })
}

function mistakes(change: PathChange): string[] {
  const found: string[] = []
  checkPathChange(change, (path) => found.push(path.join('.')))
  return found
}

describe('replacing the prefix that matched', () => {
  // The examples of the Gateway API, HTTPPathModifier, and those of the root.
  it.each([
    ['/foo/bar', '/foo', '/xyz', '/xyz/bar'],
    ['/foo/bar', '/foo', '/xyz/', '/xyz/bar'],
    ['/foo/bar', '/foo/', '/xyz', '/xyz/bar'],
    ['/foo/bar', '/foo/', '/xyz/', '/xyz/bar'],
    ['/foo', '/foo', '/xyz', '/xyz'],
    ['/foo/', '/foo', '/xyz', '/xyz/'],
    ['/foo/bar', '/foo', '', '/bar'],
    ['/foo/', '/foo', '', '/'],
    ['/foo', '/foo', '', '/'],
    ['/foo/', '/foo', '/', '/'],
    ['/foo', '/foo', '/', '/'],
    ['/foo', '/', '/xyz', '/xyz/foo'],
    ['/', '/', '/xyz', '/xyz'],
    ['/', '/', '', '/'],
    ['/foo', '/', '/', '/foo'],
  ])('makes of %s with %s replaced by "%s" %s', (path, matched, prefix, expected) => {
    expect(changed({ prefix }, path, matched)).toBe(expected)
  })

  it('always makes a path that is one, and whose beginning is no host', () => {
    const segment = fc.stringMatching(/^[A-Za-z0-9._~%-]{1,5}$/)
    const anyPath = fc.array(segment, { maxLength: 3 }).map((segments) => `/${segments.join('/')}`)
    fc.assert(
      fc.property(anyPath, anyPath, anyPath, fc.boolean(), (matched, rest, prefix, slash) => {
        const change = { prefix: slash ? `${prefix}/` : prefix }
        if (mistakes(change).length > 0) return
        const asked = matched === '/' ? rest : matched + rest
        const path = parseRequestTarget(asked)?.path
        const prefixPath = parseRequestTarget(matched)?.path
        if (path === undefined || prefixPath === undefined || !path.startsWith(prefixPath)) return
        expect(changed(change, asked, prefixPath)).toMatch(/^\/(?!\/)/)
      }),
    )
  })
})

describe('replacing the path', () => {
  it('takes no part of the old one', () => {
    expect(changed({ full: '/x/' }, '/foo/bar', '/foo')).toBe('/x/')
  })
})

describe('checking', () => {
  it.each([
    'x',
    '',
    '//evil.test',
    '/a?b',
    '/a#b',
    '/a b',
    '/a\\b',
    '/a\r\nb',
    '/é',
    '/%zz',
    '/a/../b',
    '/.',
  ])('refuses "%s"', (path) => {
    expect(mistakes({ full: path })).toEqual(['full'])
    expect(mistakes({ prefix: path })).toEqual(path === '' ? [] : ['prefix'])
  })

  it.each(['/', '/a', '/a/', '/a/b.c;v=1,2', '/%C3%A9', '/...'])('accepts "%s"', (path) => {
    expect(mistakes({ full: path })).toEqual([])
    expect(mistakes({ prefix: path })).toEqual([])
  })
})
