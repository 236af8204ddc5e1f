import { createServer } from 'node:http'
import { expect, it } from 'vitest'
import { endAfter } from '../../../test/support/cleanup.ts'
import { listening } from '../../../test/support/listening.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { anywhere } from '../egress/egress.ts'
import { createHttp1Client } from './http1-client.ts'

it('a call that ends while it waits for a permit gives up its wait, and a queued call takes its place', async () => {
  const waits = new Set<() => void>()
  const server = createServer((_, response) => response.end('done'))
  const origin = `http://127.0.0.1:${await listening(server)}`
  const client = createHttp1Client({
    ...{ connectTimeoutMs: 5_000, keepAliveMs: 5_000, firstByteTimeoutMs: 5_000, idleTimeoutMs: 5_000 },
    ...{ maxPools: 10, unusedMs: 60_000, maxConnections: 1, egress: anywhere, lookup: undefined },
    calls: { changed() {}, refused() {} },
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
