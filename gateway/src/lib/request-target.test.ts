import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRequestTarget } from './request-target.ts'

const pathOf = (target: string) => parseRequestTarget(target)?.path

describe('parseRequestTarget', () => {
  it.each([
    ['/v1/models', '/v1/models'],
    ['/', '/'],
    ['//v1//models/', '/v1/models'],
    ['/a/./b/../c', '/a/c'],
    ['/../../etc', '/etc'],
    ['/v1/%63hat/completions', '/v1/chat/completions'],
    ['/a/%2e%2e/b', '/b'],
    ['/a%2fb', '/a%2Fb'],
    ['/.well-known/x', '/.well-known/x'],
    ['http://example.com/v1/models', '/v1/models'],
    ['http://example.com', '/'],
  ])('reads %s as %s', (target, path) => {
    expect(pathOf(target)).toBe(path)
  })

  it.each(['*', '', 'v1', '/a%', '/a%zz', '/a b', '/a\\b', '/a#b', '/a\u0000', '/a?b#c', '/a?b c'])(
    'refuses %j',
    (target) => {
      expect(parseRequestTarget(target)).toBeUndefined()
    },
  )

  it('preserves the query', () => {
    expect(parseRequestTarget('/a/?x=%2e%2e//&y')).toEqual({
      path: '/a',
      query: '?x=%2e%2e//&y',
      trailingSlash: true,
    })
  })

  it.each([
    ['/a', false],
    ['/a/', true],
    ['/a//', true],
    ['/a/b/..', true],
    ['/a/%2E', true],
    ['/a/...', false],
    ['/a.', false],
    ['/', false],
    ['/..', false],
    ['/a/?b', true],
    ['/a?b/', false],
    ['http://host/a/', true],
    ['http://host/', false],
  ])('reports whether %s ends with a slash', (target, trailingSlash) => {
    expect(parseRequestTarget(target)?.trailingSlash).toBe(trailingSlash)
  })

  it('is idempotent and returns no dot or empty segment', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('/', '.', '..', 'a', '%2e', '%2F', '%61', '-'), { maxLength: 12 }),
        (parts) => {
          const path = pathOf(`/${parts.join('')}`)
          if (path === undefined) return
          expect(pathOf(path)).toBe(path)
          expect(path.slice(1).split('/').slice(0, -1)).not.toContain('')
          for (const segment of path.split('/')) expect(['.', '..']).not.toContain(segment)
        },
      ),
    )
  })
})
