import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Behaviour, fakeTarget, fixtureContext, request } from '../../../../test/fixtures/mcp.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { errorCodeOf, sendGatewayRequest } from './gateway-request.ts'
import { messageOf } from './json-rpc.ts'

function fixture(behaviour: Behaviour, method = 'tools/list') {
  const target = fakeTarget('a', { behaviours: { [method]: behaviour } })
  const others = vi.fn(() => true)
  const asking = sendGatewayRequest(target.open(), request(1, method), fixtureContext(), others)
  return { asking, others, session: target.sessions[0] }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a request the gateway waits for', () => {
  it('ends with its response, after any other messages', async () => {
    const { asking, others } = fixture((_params, sink) => {
      sink.message(messageOf({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage' }))
      return { tools: [] }
    })
    expect(await asking.outcome).toMatchObject({
      kind: 'response',
      message: { value: { id: 1, result: { tools: [] } } },
    })
    expect(others).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('fails when the target ends without an answer', async () => {
    const { asking } = fixture((_params, sink) => {
      sink.end()
      return undefined
    })
    expect(await asking.outcome).toMatchObject({
      kind: 'failed',
      failure: { error: { code: 'upstream_invalid' } },
    })
  })

  it('fails when the target takes too long', async () => {
    const { asking, session } = fixture(() => undefined)
    vi.advanceTimersByTime(59_999)
    expect(session?.cancelled).toBe(0)
    vi.advanceTimersByTime(1)
    expect(await asking.outcome).toMatchObject({
      kind: 'failed',
      failure: { error: { code: 'upstream_timeout' } },
    })
    expect(session?.cancelled).toBe(1)
  })

  it('fails when it is no longer wanted', async () => {
    const { asking, session } = fixture(() => undefined)
    asking.flow.cancel()
    expect(await asking.outcome).toMatchObject({ kind: 'failed' })
    expect(session?.cancelled).toBe(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('fails, and leaves the target, when something before the response cannot be passed on', async () => {
    const { asking, others, session } = fixture((_params, sink) => {
      setTimeout(() => sink.message(messageOf({ jsonrpc: '2.0', method: 'n' })), 1)
      return undefined
    })
    others.mockImplementationOnce(() => {
      throw new GatewayError('upstream_invalid', 'odd')
    })
    vi.advanceTimersByTime(2)
    expect(await asking.outcome).toMatchObject({ kind: 'failed', failure: { error: { message: 'odd' } } })
    expect(session?.cancelled).toBe(1)
  })

  it('leaves a stream that stays open behind the response', async () => {
    const { asking, session } = fixture((_params, sink) => {
      sink.message(messageOf({ jsonrpc: '2.0', id: 1, result: {} }))
      return undefined
    })
    await asking.outcome
    vi.advanceTimersByTime(1_000)
    expect(session?.cancelled).toBe(1)
  })
})

describe('the code of an error', () => {
  it('is none for a result, and some for any error', () => {
    expect(errorCodeOf(messageOf({ result: {} }))).toBeUndefined()
    expect(errorCodeOf(messageOf({ error: { code: -32601 } }))).toBe(-32601)
    expect(errorCodeOf(messageOf({ error: 'odd' }))).toBe(0)
  })
})
