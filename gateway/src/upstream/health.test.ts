import { expect, it } from 'vitest'
import { fixtureContext } from '../../test/fixtures/pipeline.ts'
import type { Memory } from '../lib/planes/memory.ts'
import { compileHealth } from './health.ts'

it('is healthy until its memory is bound', () => {
  // As in a data plane on a thread, for an endpoint that was activated without compilation.
  const unbound: Memory = {
    plane: 0,
    planes: 2,
    region: () => ({
      int32: new Int32Array(),
      float64: new Float64Array(),
      uint8: new Uint8Array(),
      grow() {},
    }),
  }
  const context = { ...fixtureContext(), memory: unbound }
  const health = compileHealth({ eviction: { duration: '1s' } }, 'a', context)
  health?.failed()
  health?.succeeded()
  expect(health?.isEjected()).toBe(false)
})
