import { expect, it } from 'vitest'
import { createCompileCache } from '../live/compile-cache.ts'
import { jointNode } from './joint-node.ts'

it('is the same for the same nodes in the same order only', () => {
  const context = createCompileCache(() => '')
  const [route, one, other] = [{}, {}, {}]
  const joint = jointNode(route, [one, other], context)
  expect(jointNode(route, [one, other], context)).toBe(joint)
  const different = [
    jointNode(route, [other, one], context),
    jointNode(route, [one], context),
    jointNode(route, [], context),
    jointNode({}, [one, other], context),
  ]
  for (const node of different) expect(node).not.toBe(joint)
})
