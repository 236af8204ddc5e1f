import { describe, expect, it } from 'vitest'
import { runToCompletion } from '../../lib/scheduling/yielding.ts'
import { checkTraffic } from './check-traffic.ts'
import { createCheckedRoutes } from './checked-routes.ts'
import { trafficSections, type WrittenSections } from './sections.ts'

function mistakes(sections: WrittenSections): string[] {
  const found: string[] = []
  const report = (path: readonly unknown[], message: string) => found.push(`${path.join('.')}: ${message}`)
  runToCompletion(checkTraffic(trafficSections(sections), report, createCheckedRoutes()))
  return found
}

describe('checkTraffic', () => {
  it('reports duplicate binds, of which one would replace the other and its policies', () => {
    const listeners = [{ name: 'a' }]
    expect(
      mistakes({
        binds: [
          { port: 80, listeners },
          { port: 81, listeners },
        ],
      }),
    ).toEqual([])
    expect(
      mistakes({
        binds: [
          { port: 80, listeners },
          { port: 80, listeners },
        ],
      }),
    ).toEqual(['binds.1.port: another entry of binds has this port: put its listeners there'])
    expect(mistakes({ gateways: { 'bind-80': { port: 81 } }, binds: [{ port: 80, listeners }] })).toEqual([
      'binds.0: is the gateway bind-80, and another gateway is named so: rename that one',
    ])
  })

  it.each([
    ['a.test', 'A.test.'],
    ['*', undefined],
  ])('finds listeners for the same hosts however they are spelt: %s, %s', (one, other) => {
    const listeners = [
      { name: 'a', hostname: one },
      { name: 'b', hostname: other },
    ]
    const [mistake, ...others] = mistakes({ gateways: { g: { port: 80, listeners } } })
    expect(mistake).toMatch(/^gateways\.g\.listeners\.1: another listener of this gateway is /)
    expect(others).toEqual([])
  })
})
