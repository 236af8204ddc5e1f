import { describe, expect, it } from 'vitest'
import { collect, fakeTarget, fixtureContext, request, settle } from '../../../../test/fixtures/mcp.ts'
import { sendStatelessRequest } from './stateless-request.ts'

describe('a request in a session of its own', () => {
  it('fails when something goes wrong behind the introduction, and nothing else does', async () => {
    const behaviours = {
      'tools/call': () => {
        throw new TypeError('a defect')
      },
    }
    const sink = collect()
    const session = fakeTarget('a', { behaviours }).open()
    sendStatelessRequest(session, request(1, 'tools/call'), fixtureContext(), { sink, version: '1' })
    await settle()
    expect(sink.failure).toMatchObject({ kind: 'error', error: { code: 'internal' } })
  })

  it('reports the refusal of the target', async () => {
    const refused = () => ({ error: { code: -32600, message: 'no' } })
    const sink = collect()
    const session = fakeTarget('a', { behaviours: { initialize: refused } }).open()
    sendStatelessRequest(session, request(1, 'tools/call'), fixtureContext(), { sink, version: '1' })
    await settle()
    expect(sink.failure).toMatchObject({ kind: 'refused', status: 502 })
  })
})
