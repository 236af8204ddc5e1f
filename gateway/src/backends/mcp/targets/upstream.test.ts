import { expect, it } from 'vitest'
import type { Upstream } from './upstream.ts'
import { withUpstream } from './upstream.ts'

it.each([
  [401, 502],
  [403, 403],
])('a challenge with status %i is hidden if the gateway has the credential', async (status, shown) => {
  const authorize = { source: 'gateway', apply() {} } as never
  const upstream: Upstream = {
    ...{ connection: undefined as never, requestTimeoutMs: undefined, authorize },
    ...{ editRequestHeaders: undefined, health: undefined },
  }
  const headers = { 'www-authenticate': 'Bearer error="insufficient_scope"', 'content-type': 'text/plain' }
  const send = withUpstream(async () => ({ status, headers, body: undefined }), upstream)
  const reply = await send({ origin: 'https://a.test', path: '/', method: 'POST', headers: {} } as never)
  expect(reply).toMatchObject({ status: shown, headers: { 'content-type': 'text/plain' } })
  expect(reply.headers).not.toHaveProperty('www-authenticate')
})
