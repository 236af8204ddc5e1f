import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Candidate } from '../candidate.ts'
import { fittingFirst } from './context-window.ts'

it('orders candidates that fit first, then the others by size, and loses none', () => {
  const windows = fc.array(fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }), { maxLength: 6 })
  fc.assert(
    fc.property(windows, fc.integer({ min: 1, max: 50 }), (sizes, tokens) => {
      const candidates = sizes.map(
        (contextWindow, index) => ({ contextWindow, model: String(index) }) as unknown as Candidate,
      )
      const ordered = fittingFirst(candidates, tokens)
      expect(ordered.toSorted((a, b) => Number(a.model) - Number(b.model))).toEqual(candidates)
      const fits = ({ contextWindow }: Candidate) => contextWindow === undefined || contextWindow >= tokens
      const fitting = candidates.filter(fits)
      expect(ordered.slice(0, fitting.length)).toEqual(fitting)
      const others = ordered.slice(fitting.length).map(({ contextWindow = 0 }) => contextWindow)
      expect(others).toEqual(others.toSorted((a, b) => b - a))
    }),
  )
})
