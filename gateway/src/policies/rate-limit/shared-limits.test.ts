import { expect, it } from 'vitest'
import type { Path } from '../../schema/path.ts'
import type { LocalRateLimitConfig } from './local-config.ts'
import { checkSharedLimits } from './shared-limits.ts'

it('reports limits with the same id and other content', () => {
  const lists: LocalRateLimitConfig[] = [
    [{ id: 'a', requests: 1, unit: 'Hours' }],
    [
      { requests: 2, unit: 'Hours' },
      { unit: 'Hours', requests: 1, id: 'a' },
      { id: 'b', requests: 3, unit: 'Hours' },
    ],
    [{ id: 'a', requests: 1, unit: 'Hours', burst: 1 }],
  ]
  const found: string[] = []
  const located = lists.map((limits, index) => ({
    limits,
    at: (part: Path): Path => ['routes', index, ...part],
  }))
  checkSharedLimits(located, (path, message) => found.push(`${path.join('.')}: ${message}`))
  expect(found).toEqual(['routes.2.0.id: another limit with the id "a" differs: they share one count'])
})
