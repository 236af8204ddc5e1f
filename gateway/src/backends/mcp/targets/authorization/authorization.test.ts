import { describe, expect, it } from 'vitest'
import { collect, fakeTarget, fixtureContext, request, settle } from '../../../../../test/fixtures/mcp.ts'
import { fixtureExchange } from '../../../../../test/fixtures/pipeline.ts'
import { GatewayError } from '../../../../lib/gateway-error.ts'
import type { Authorize } from '../../../../upstream/credentials/credentials.ts'
import { messageOf } from '../../message/json-rpc.ts'
import { withClientAuthorization } from './authorization.ts'

const notification = messageOf({ jsonrpc: '2.0', method: 'notifications/initialized' })

function authorize(apply: Authorize['apply'], source: Authorize['source'] = 'client') {
  const target = fakeTarget('t')
  const session = withClientAuthorization({ ...target, authorize: () => ({ source, apply }) }).open()
  return { target, session, inner: () => target.sessions[0] }
}

describe('the credential of a client', () => {
  const context = fixtureContext({ caller: fixtureExchange() })

  it('is requested before each call', async () => {
    const { session, inner } = authorize(async ({ headers }, { facts }) => {
      headers['authorization'] = `Bearer for-${facts?.request.method}`
    })
    session.request(request(1, 'tools/call'), context, collect())
    await settle()
    await session.deliver(notification, context)
    await session.listen(context, collect())
    const seen = [...(inner()?.contexts ?? []), inner()?.streams[0]?.context]
    expect(seen.map((call) => call?.headers['authorization'])).toEqual([
      'Bearer for-POST',
      'Bearer for-POST',
      'Bearer for-POST',
    ])
    expect(context.headers).toEqual({})
  })

  it.each([
    [
      'throws',
      () => {
        throw new GatewayError('credential_missing', 'none')
      },
    ],
    ['rejects', () => Promise.reject(new GatewayError('credential_refused', 'none'))],
  ])('denies all calls if it %s', async (_, apply) => {
    const { session, inner } = authorize(apply)
    const sink = collect()
    session.request(request(1, 'tools/call'), context, sink)
    await settle()
    expect(sink.failure).toMatchObject({ kind: 'error', error: { message: 'none' } })
    expect(await session.deliver(notification, context)).toMatchObject({ kind: 'error' })
    expect(await session.listen(context, collect())).toMatchObject({ kind: 'failed' })
    expect(inner()).toMatchObject({ requests: [], delivered: [], streams: [] })
  })

  it('is not sent for a cancelled request', async () => {
    const { session, inner } = authorize(() => Promise.resolve())
    session.request(request(1, 'tools/call'), context, collect()).cancel()
    await settle()
    expect(inner()?.requests).toEqual([])
  })

  it('of the gateway is set elsewhere', () => {
    const { session, inner } = authorize(() => Promise.reject(new Error('unexpected')), 'gateway')
    session.request(request(1, 'tools/call'), context, collect())
    expect(inner()?.requests).toHaveLength(1)
  })
})
