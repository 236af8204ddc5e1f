import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findPathVariants } from './path-variants.ts'
import { parseRequestTarget } from './request-target.ts'

const variantsOf = (target: string) => parseRequestTarget(target)?.variants

describe('findPathVariants', () => {
  it.each([
    ['/x/..%2fadmin', 'a dot segment'],
    ['/x/..%5Cadmin', 'a dot segment'],
    ['/x/%2e%2e%2fadmin', 'a dot segment'],
    ['/x/..;/admin', 'a dot segment'],
    ['/x/.;a=b/admin', 'a dot segment'],
    ['/x/..%3b/admin', 'a dot segment'],
    ['/x/..%252fadmin', 'a dot segment'],
    ['/x/%252e%252e/admin', 'a dot segment'],
    ['/x/%252e%252e%255cadmin', 'a dot segment'],
    ['/%2fadmin', 'an empty segment'],
    ['/%5cadmin', 'an empty segment'],
    ['/%252fadmin', 'an empty segment'],
    ['/admin%2F', 'an empty segment'],
    ['/;x/admin', 'an empty segment'],
    ['/admin%00', 'a NUL character'],
    ['/admin%2500.png', 'a NUL character'],
  ])('reports %s as unsafe: %s', (target, reason) => {
    expect(variantsOf(target)).toEqual({ kind: 'unsafe', reason })
  })

  it.each([
    ['/x%2Fadmin', ['/x/admin']],
    ['/x%5Cadmin', ['/x/admin']],
    ['/x%252fadmin', ['/x/admin']],
    ['/%2561dmin', ['/admin']],
    ['/admin;x=1', ['/admin']],
    ['/admin%3Bx=1', ['/admin;x=1', '/admin']],
    ['/admin%3Fx', ['/admin']],
    ['/admin%23x', ['/admin']],
    ['/wiki/%3F', ['/wiki']],
    ['/%40me', ['/@me']],
    ['/group%2Fproject/caf%c3%a9', ['/group/project/caf%C3%A9']],
  ])('derives from %s the variants %j', (target, paths) => {
    const variants = variantsOf(target)
    expect(variants).toEqual({ kind: 'paths', paths: expect.arrayContaining(paths) })
  })

  it.each(['/a%20b', '/caf%C3%A9', '/100%25', '/a/b.c', '/a%7Fb'])('derives nothing from %s', (target) => {
    expect(variantsOf(target)).toBeUndefined()
  })

  it('rejects a long path with variants and accepts a long path without', () => {
    expect(findPathVariants(`/${'a'.repeat(3000)}%2Fb`)).toMatchObject({ kind: 'unsafe' })
    expect(findPathVariants(`/${'a%20'.repeat(3000)}`)).toBeUndefined()
  })

  it('derives normalised paths only', () => {
    const parts = fc.constantFrom(
      '/',
      'a',
      '..',
      '.',
      ';',
      '%2F',
      '%25',
      '2F',
      '%3B',
      '%3F',
      '%5C',
      '%20',
      '41',
    )
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 10 }), (texts) => {
        const variants = variantsOf(`/${texts.join('')}`)
        if (variants?.kind !== 'paths') return
        for (const path of variants.paths) {
          expect(parseRequestTarget(path)).toMatchObject({ path, trailingSlash: false })
        }
      }),
    )
  })
})
