import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../../test/fixtures/pipeline.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { Policy } from '../policy.ts'
import { attemptThrough, copyForwarding } from './attempt.ts'

const ok = (): Reply => ({ status: 200, headers: {}, body: undefined })

function recording(name: string, steps: string[], more: Partial<Policy> = {}): Policy {
  return {
    name,
    onRequest() {
      steps.push(`${name} request`)
      return undefined
    },
    onReply(_, reply) {
      steps.push(`${name} reply`)
      return reply
    },
    ...more,
  }
}

describe('attemptThrough', () => {
  it('runs policies in order before the call and in reverse on the reply', async () => {
    const steps: string[] = []
    const policies = [recording('a', steps), recording('b', steps)]
    const result = await attemptThrough(policies, fixtureExchange({}), () => {
      steps.push('call')
      return ok()
    })
    expect(result).toMatchObject({ kind: 'replied', reply: { status: 200 } })
    expect(steps).toEqual(['a request', 'b request', 'call', 'b reply', 'a reply'])
  })

  it('makes no call after a refusal, which passes the entered policies only', async () => {
    const steps: string[] = []
    const denying = recording('deny', steps, { onRequest: async () => ({ ...ok(), status: 403 }) })
    const result = await attemptThrough(
      [recording('a', steps), denying, recording('b', steps)],
      fixtureExchange({}),
      () => {
        steps.push('call')
        return ok()
      },
    )
    expect(result).toMatchObject({ kind: 'refused', reply: { status: 403 } })
    expect(steps).toEqual(['a request', 'deny reply', 'a reply'])
  })

  it('discards the reply if a policy of the reply fails', async () => {
    let cancelled = false
    const body = {
      start() {},
      resume() {},
      cancel() {
        cancelled = true
      },
    }
    const failing: Policy = {
      name: 'failing',
      onReply() {
        throw new Error('broken')
      },
    }
    const pending = attemptThrough([failing], fixtureExchange({}), () => ({ ...ok(), body }))
    await expect(pending).rejects.toThrow('broken')
    expect(cancelled).toBe(true)
  })
})

it('copies the changes of a request', () => {
  const original = { path: '/a', host: undefined, headerEdits: [() => {}] }
  const copy = copyForwarding(original)
  copy?.headerEdits.push(() => {})
  expect(original.headerEdits).toHaveLength(1)
  expect(copyForwarding(undefined)).toBeUndefined()
})
