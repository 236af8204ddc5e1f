import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { listening } from '../../../test/support/listening.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import { anywhere } from '../egress/egress.ts'
import { createHttp1Client } from './http1-client.ts'

async function fixture({ firstByteTimeoutMs }: { firstByteTimeoutMs: number }) {
  const waits = new Set<() => void>()
  let active = 0
  const server = createServer((_, response) => response.end('done'))
  const origin = `http://127.0.0.1:${await listening(server)}`
  const client = createHttp1Client({
    ...{ connectTimeoutMs: 5_000, keepAliveMs: 5_000, firstByteTimeoutMs, idleTimeoutMs: 5_000 },
    ...{ maxPools: 10, unusedMs: 60_000, maxConnections: 1, egress: anywhere, lookup: undefined },
    calls: {
      changed(by) {
        active += by
      },
      refused() {},
    },
    shared: () => ({
      calls: { begin: () => true, end() {} },
      permits: {
        acquire(open) {
          waits.add(open)
          return () => waits.delete(open)
        },
        release() {},
        end() {},
      },
      end() {},
    }),
  })
  endAfter('test', () => client.close())
  endAfter('test', () => void server.close())
  const request = { origin, path: '/', method: 'GET', headers: {}, body: undefined, acceptsWhole: true }
  return { client, request, waits, active: () => active }
}

it('a call that ends while it waits for a permit gives up its wait, and a queued call takes its place', async () => {
  const { client, request, waits } = await fixture({ firstByteTimeoutMs: 5_000 })
  const cancellation = createCancellation()
  const cancelled = client.send({ ...request, cancellation })
  const [first] = waits
  const queued = client.send(request)
  expect(waits.size).toBe(1)
  cancellation.cancel()
  await expect(cancelled).rejects.toMatchObject({ code: 'request_aborted' })
  expect(waits.size).toBe(1)
  const [second] = waits
  expect(second).not.toBe(first)
  second?.()
  expect((await queued).status).toBe(200)
})

it('the wait for a connection is limited for a call without a limit, in the queue too', async () => {
  const { client, request, waits, active } = await fixture({ firstByteTimeoutMs: 20 })
  const calls = [client.send(request), client.send(request)]
  for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect([waits.size, active()]).toEqual([0, 0])
})

it('a request body that fails at its start fails only its call', async () => {
  const { client, request, waits, active } = await fixture({ firstByteTimeoutMs: 5_000 })
  const body = {
    start() {
      throw new GatewayError('internal', 'the source is broken')
    },
    resume() {},
    cancel() {},
  }
  const call = client.send({ ...request, method: 'POST', body })
  for (const open of waits) open()
  await expect(call).rejects.toMatchObject({ message: 'the source is broken' })
  expect(active()).toBe(0)
})
