import { describe, expect, it } from 'vitest'
import type { Authorize } from '../../../upstream/credentials/credentials.ts'
import { readErrorReply } from './http-replies.ts'
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

describe('an error of the target', () => {
  const placed = () => ['machine-token']
  const base: Upstream = {
    ...{ connection: undefined as never, requestTimeoutMs: undefined, authorize: undefined },
    ...{ editRequestHeaders: undefined, health: undefined },
  }
  const request = { origin: 'https://a.test', path: '/', method: 'POST', headers: {} } as const
  const place: Authorize['apply'] = ({ headers }) => {
    headers['authorization'] = 'Bearer machine-token'
    return undefined
  }

  it.each([
    ['of the gateway', { ...base, authorize: { source: 'gateway', placed, apply: place } as Authorize }, {}],
    [
      'for the client',
      { ...base, authorize: { source: 'client', placed, apply: place } as Authorize },
      { authorization: 'Bearer machine-token' },
    ],
    ['of a login', { ...base, ofUser: placed }, { authorization: 'Bearer machine-token' }],
  ])('is relayed without the credential %s', async (_, upstream, headers) => {
    const body = Buffer.from('machine-token is refused')
    const send = withUpstream(async () => ({ status: 400, headers: {}, body }), upstream)
    const reply = await send({ ...request, headers, body: undefined })
    expect((await readErrorReply(reply, 1_000)).body?.toString()).toBe('[hidden] is refused')
  })

  it('is relayed with a credential that the client has sent', async () => {
    const authorize = { source: 'client', isPassthrough: true, apply: place } as Authorize
    const body = Buffer.from('machine-token is refused')
    const send = withUpstream(async () => ({ status: 400, headers: {}, body }), { ...base, authorize })
    const headers = { authorization: 'Bearer machine-token' }
    const reply = await send({ ...request, headers, body: undefined })
    expect(reply.credentials).toBeUndefined()
  })
})
