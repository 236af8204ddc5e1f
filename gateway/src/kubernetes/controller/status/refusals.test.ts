import { describe, expect, it } from 'vitest'
import type { ConditionState, ObjectStatus } from '../../translate/status/object-status.ts'
import { refusalsOf } from './refusals.ts'

const missing: ConditionState = {
  type: 'ResolvedRefs',
  status: 'False',
  reason: 'BackendNotFound',
  message: 'Service is missing',
}
const accepted: ConditionState = { type: 'Accepted', status: 'True', reason: 'Accepted', message: '' }
const pending: ConditionState = {
  type: 'Programmed',
  status: 'False',
  reason: 'Pending',
  message: 'no proxy',
}

describe('refusalsOf', () => {
  it('lists negative conditions of all parents, each text once', () => {
    const parent = { parentRef: { name: 'web' }, controllerName: 'c', conditions: [accepted, missing] }
    const status: ObjectStatus = {
      kind: 'HTTPRoute',
      key: 'apps/shop',
      of: 'route',
      status: { parents: [parent, parent] },
    }
    expect(refusalsOf(status)).toEqual([missing])
  })

  it('lists those of listeners, without states that end by themselves', () => {
    const listener = { name: 'http', supportedKinds: [], attachedRoutes: 0, conditions: [missing, pending] }
    const status: ObjectStatus = {
      kind: 'Gateway',
      key: 'apps/web',
      of: 'gateway',
      status: { conditions: [accepted, pending], listeners: [listener] },
    }
    expect(refusalsOf(status)).toEqual([missing])
  })
})
