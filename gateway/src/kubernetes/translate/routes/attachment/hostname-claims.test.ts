import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { intersectHostnames } from '../../../../pipeline/routing/hostnames.ts'
import { createHostnameClaims } from './hostname-claims.ts'

const hostname = fc.constantFrom('a.b.c', 'b.c', 'c', 'x.b.c', '*.c', '*.b.c', '*.a.b.c', '*.d', '*')
const list = fc.array(hostname, { maxLength: 3 })

describe('hostname claims', () => {
  it('find an owner if and only if a hostname has a common host with one of the owners', () => {
    fc.assert(
      fc.property(fc.array(list, { maxLength: 4 }), list, (added, wanted) => {
        const claims = createHostnameClaims()
        for (const [index, hostnames] of added.entries()) claims.add(hostnames, String(index))
        const found = claims.find(wanted)
        const owners = added.flatMap((hostnames, index) =>
          intersect(hostnames, wanted) ? [String(index)] : [],
        )
        expect(found === undefined ? [] : owners).toEqual(owners)
        if (found !== undefined) expect(owners).toContain(found)
      }),
    )
  })

  it('name the first owner of a hostname', () => {
    const claims = createHostnameClaims()
    claims.add(['a.test'], 'older')
    claims.add(['a.test', 'b.test'], 'newer')
    expect([claims.find(['A.test.']), claims.find(['*.test']), claims.find(['b.test'])]).toEqual([
      'older',
      'older',
      'newer',
    ])
  })
})

/** No hostnames are all. */
function intersect(some: readonly string[], others: readonly string[]): boolean {
  const all = (hostnames: readonly string[]) => (hostnames.length === 0 ? ['*'] : hostnames)
  return all(some).some((one) => all(others).some((other) => intersectHostnames(one, other) !== undefined))
}
