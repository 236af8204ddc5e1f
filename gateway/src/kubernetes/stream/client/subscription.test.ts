import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../../../../test/support/cleanup.ts'
import {
  ownToken,
  type StreamController,
  startStreamController,
  streamGateway,
} from '../../../../test/support/stream-controller.ts'
import { until, within } from '../../../../test/support/wait.ts'
import type { Config } from '../../../config/schema.ts'
import { systemClock } from '../../../lib/clock.ts'
import { createYieldPoint } from '../../../lib/scheduling/yielding.ts'
import type { ReceivedConfig } from './received.ts'
import { type Subscription, subscribe } from './subscription.ts'

const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }

function configOf(port: number): Config {
  return { gateways: { [port]: { port } } }
}

/** Subscribes to a controller, with a copy that is used at once. */
async function subscribeTo(controller: StreamController, copied?: ReceivedConfig): Promise<Subscription> {
  const subscription = await subscribe({
    url: controller.url,
    gateway: streamGateway,
    proxy: 'edge-1',
    id: randomBytes(16).toString('base64url'),
    copy: {
      read: async () => (copied === undefined ? undefined : { received: copied, savedAt: Date.now() }),
      save() {},
      confirm() {},
      async close() {},
    },
    patienceMs: 1,
    readCa: async () => controller.authority.certificate,
    readToken: async () => ownToken(),
    onStatus() {},
    clock: systemClock,
    random: Math.random,
    log,
    yieldPoint: createYieldPoint(systemClock),
  })
  endAfter('test', subscription.close)
  return subscription
}

/** A configuration as a proxy receives it. */
async function received(config: Config): Promise<ReceivedConfig> {
  const controller = await startStreamController()
  await controller.publish(config)
  const subscription = await subscribeTo(controller)
  return await within('a configuration', subscription.latest())
}

describe('subscribe', () => {
  it('assigns an outcome to the configuration that was read, not to a newer one', async () => {
    const copied = await received(configOf(80))
    const controller = await startStreamController()
    const subscription = await subscribeTo(controller, copied)
    expect(await within('the copy', subscription.latest())).toBe(copied)
    const version = await controller.publish(configOf(81))
    await within('another configuration', subscription.after(copied))
    expect(subscription.settle({ kind: 'refused', errors: ['port in use'] })).toBe(copied)
    await within('another configuration', subscription.after(copied))
    expect((await subscription.latest()).version).toBe(version)
    subscription.settle({ kind: 'accepted' })
    await until('the acknowledgement', () => controller.proxies()[0]?.serving === version)
    expect(controller.proxies()[0]?.refused).toBeUndefined()
  })

  it('reports a change to the listener after a wait for another configuration', async () => {
    const copied = await received(configOf(80))
    const controller = await startStreamController()
    const subscription = await subscribeTo(controller, copied)
    await within('the copy', subscription.latest())
    await controller.publish(configOf(81))
    await within('another configuration', subscription.after(copied))
    expect(subscription.settle({ kind: 'accepted' })).toBe(copied)
    let changes = 0
    subscription.watch(() => void changes++)
    expect(changes).toBe(1)
  })
})
