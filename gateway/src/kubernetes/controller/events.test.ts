import { describe, expect, it } from 'vitest'
import { until } from '../../../test/support/wait.ts'
import { systemClock } from '../../lib/clock.ts'
import type { Gateway } from '../objects/gateway-api.ts'
import { createEvents } from './events.ts'

const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }
const gateway: Gateway = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'web', namespace: 'apps', uid: 'uid-1' },
  spec: { gatewayClassName: 'tollgate', listeners: [] },
}

/** Events whose writes wait for `permit`. */
function open() {
  const permits: (() => void)[] = []
  const notes: unknown[] = []
  const events = createEvents({
    client: {
      async create(_kind, event) {
        notes.push(Reflect.get(event, 'note'))
        return {}
      },
    },
    identity: 'a',
    rate: { acquire: () => new Promise<void>((resolve) => void permits.push(resolve)) },
    clock: systemClock,
    log,
    signal: new AbortController().signal,
  })
  return { events, permits, notes }
}

describe('createEvents', () => {
  it('writes an event once for the same text', async () => {
    const { events, permits, notes } = open()
    for (const note of ['one', 'one', 'two']) events.warn(gateway, 'ConfigurationRefused', note)
    for (const permit of permits) permit()
    await until('the events', () => notes.length > 0)
    expect(notes).toEqual(['one', 'two'])
  })

  it('limits the events that wait', async () => {
    const { events, permits, notes } = open()
    for (let index = 0; index < 5_000; index++) events.warn(gateway, 'ConfigurationRefused', `error ${index}`)
    expect(permits).toHaveLength(100)
    for (const permit of permits) permit()
    await until('the events', () => notes.length === 100)
    events.warn(gateway, 'ConfigurationRefused', 'another')
    expect(permits).toHaveLength(101)
  })
})
