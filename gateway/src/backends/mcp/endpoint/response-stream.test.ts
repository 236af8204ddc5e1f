import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { messagesIn, read, request } from '../../../../test/fixtures/mcp.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import { isSource } from '../../../net/http/body.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import { errorText, isResponseTo, messageOf } from '../message/json-rpc.ts'
import type { TargetFailure } from '../message/message.ts'
import { createResponseStream, keepAliveMs, type ResponseStreamOptions } from './response-stream.ts'

const log = messageOf({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x' } })
const response = messageOf({ jsonrpc: '2.0', id: 1, result: { ok: true } })
const broken: TargetFailure = { kind: 'error', error: new GatewayError('upstream_reset', 'gone') }

function fixture(more: Partial<ResponseStreamOptions> = {}) {
  const flow = { resume: vi.fn(), cancel: vi.fn() }
  const onOver = vi.fn()
  const answer = createResponseStream({
    completes: (message) => isResponseTo(message, 1),
    refuse: (failure) => ({ status: 599, headers: {}, body: Buffer.from(failure.kind) }),
    errorText: (failure) => errorText('1', -32603, failure.kind),
    onEnd: onOver,
    ...more,
  })
  answer.attach(flow)
  return { answer, flow, onOver, ...answer }
}

/** The reply, if it is there already. */
async function current(reply: Promise<Reply>): Promise<Reply | undefined> {
  return Promise.race([reply, Promise.resolve(undefined)])
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a flow', () => {
  it('is cancelled when all was over before it could be attached', () => {
    const answer = createResponseStream({ refuse: () => ({ status: 599, headers: {}, body: undefined }) })
    const flow = { resume: vi.fn(), cancel: vi.fn() }
    answer.sink.end()
    answer.attach(flow)
    expect(flow.cancel).toHaveBeenCalledOnce()
  })
})

describe('an answer that comes at once', () => {
  it('is sent in one piece, as an event stream of one event', async () => {
    const { sink, reply, onOver } = fixture()
    sink.message(response)
    sink.end()
    const { status, headers, body } = await reply
    expect(status).toBe(200)
    expect(headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' })
    expect(isSource(body)).toBe(false)
    expect(read({ status, headers, body }).text).toBe(`event: message\ndata: ${response.text}\n\n`)
    expect(onOver).toHaveBeenCalledExactlyOnceWith(undefined)
  })

  it('carries id and retry of the upstream event', async () => {
    const { sink, reply } = fixture()
    sink.message(response, { id: '7', retry: 20 })
    expect(read(await reply).events).toEqual([{ event: 'message', data: response.text, id: '7', retry: 20 }])
  })

  it('keeps text of several lines one message', async () => {
    const { sink, reply } = fixture()
    sink.message({
      text: '{"jsonrpc":"2.0",\n"id":1,\r\n"result":{}}',
      value: { jsonrpc: '2.0', id: 1, result: {} },
    })
    expect(messagesIn(read(await reply))).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }])
  })

  it('leaves a target that does not close its stream after a while', async () => {
    const { sink, flow, onOver } = fixture()
    sink.message(response)
    expect(onOver).not.toHaveBeenCalled()
    vi.advanceTimersByTime(keepAliveMs)
    expect(flow.cancel).toHaveBeenCalled()
    expect(onOver).toHaveBeenCalledOnce()
  })
})

describe('an answer of several messages', () => {
  it('is streamed in order and ends with the response', async () => {
    const { sink, reply } = fixture()
    sink.message(log)
    const stream = read(await reply)
    expect(messagesIn(stream)).toEqual([log.value])
    sink.message(request('s1', 'sampling/createMessage'))
    expect(stream.ended).toBe(false)
    sink.message(response)
    expect(messagesIn(stream)).toHaveLength(3)
    expect(stream.ended).toBe(true)
  })

  it('passes nothing on behind the response', async () => {
    const { sink, reply } = fixture()
    sink.message(log)
    sink.message(response)
    sink.message(log)
    expect(messagesIn(read(await reply))).toHaveLength(2)
  })

  it('is distinct from a complete one when the target fails', async () => {
    const { sink, reply } = fixture()
    sink.message(log)
    sink.fail(broken)
    const stream = read(await reply)
    expect(messagesIn(stream)[1]).toMatchObject({ id: 1, error: { code: -32603 } })
    expect(stream.ended).toBe(true)
  })

  it('is distinct from a complete one when the target ends', async () => {
    const { sink, reply } = fixture()
    sink.message(log)
    sink.end()
    expect(messagesIn(read(await reply))[1]).toMatchObject({ id: 1, error: { code: -32603 } })
  })

  it('ends without a word where the client can go on behind an event id', async () => {
    const { sink, reply } = fixture()
    sink.mark({ id: 'e1', retry: 5 })
    sink.end()
    const stream = read(await reply)
    expect(stream.text).toBe('event: message\nid: e1\nretry: 5\ndata: \n\n')
    expect(stream.ended).toBe(true)
  })

  it('ends without a word also when the target fails behind an event id, but not when the session is over', async () => {
    const [lost, over] = [fixture(), fixture()]
    for (const { sink } of [lost, over]) sink.message(log, { id: 'e1' })
    lost.sink.fail(broken)
    over.sink.fail({ kind: 'ended', reason: 'gone' })
    expect(messagesIn(read(await lost.reply))).toEqual([log.value])
    expect(messagesIn(read(await over.reply))[1]).toMatchObject({ id: 1, error: {} })
  })

  it('stops the target while the client does not read, and goes on when it does', async () => {
    const { sink, reply, flow } = fixture()
    const big = messageOf({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { data: 'x'.repeat(70_000) },
    })
    expect(sink.message(big)).toBe(false)
    const { body } = await reply
    if (!isSource(body)) throw new Error('not streamed')
    body.start({ write: () => false, end() {}, fail() {} })
    expect(flow.resume).not.toHaveBeenCalled()
    expect(sink.message(log)).toBe(false)
    body.resume()
    expect(flow.resume).toHaveBeenCalledOnce()
  })

  it('cancels the target when the client leaves', async () => {
    const { sink, reply, flow, onOver } = fixture()
    sink.message(log)
    const { body } = await reply
    if (isSource(body)) body.cancel()
    expect(flow.cancel).toHaveBeenCalled()
    expect(onOver).toHaveBeenCalledOnce()
  })
})

describe('a silent target', () => {
  it('leaves the status open for a while, then keeps the connection alive', async () => {
    const { sink, reply } = fixture()
    vi.advanceTimersByTime(keepAliveMs - 1)
    expect(await current(reply)).toBeUndefined()
    vi.advanceTimersByTime(1)
    const stream = read(await reply)
    expect(stream.text).toBe(':\n\n')
    vi.advanceTimersByTime(keepAliveMs)
    expect(stream.text).toBe(':\n\n:\n\n')
    sink.message(response)
    expect(messagesIn(stream)).toEqual([response.value])
    expect(stream.ended).toBe(true)
  })

  it('is not spoken for to a client that does not read', async () => {
    const { reply } = fixture()
    vi.advanceTimersByTime(keepAliveMs)
    const { body } = await reply
    if (!isSource(body)) throw new Error('not streamed')
    const write = vi.fn(() => false)
    body.start({ write, end() {}, fail() {} })
    vi.advanceTimersByTime(10 * keepAliveMs)
    expect(write).toHaveBeenCalledTimes(1)
  })

  it('is over once, however it ends', () => {
    const { sink, answer, onOver } = fixture()
    sink.message(response)
    sink.end()
    answer.abandon()
    answer.abandon()
    expect(onOver).toHaveBeenCalledOnce()
  })

  it('leaves no timer behind', async () => {
    const { sink } = fixture()
    sink.message(response)
    sink.end()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a failure before the first message', () => {
  it('is a reply of its own', async () => {
    const { sink, reply, onOver } = fixture()
    sink.fail(broken)
    expect((await reply).status).toBe(599)
    expect(onOver).toHaveBeenCalledExactlyOnceWith(broken)
  })

  it('is also an end without an answer', async () => {
    const { sink, reply } = fixture()
    sink.end()
    expect((await reply).status).toBe(599)
  })

  it('is not waited for by a client that has left', async () => {
    const { abandon, reply, flow } = fixture()
    abandon()
    expect((await reply).status).toBe(599)
    expect(flow.cancel).toHaveBeenCalled()
  })
})

describe('an answer whose head depends on the response', () => {
  it('buffers messages before it', async () => {
    let session = ''
    const { sink, reply } = fixture({ buffered: true, headers: () => ({ 'mcp-session-id': session }) })
    sink.message(log)
    vi.advanceTimersByTime(3 * keepAliveMs)
    expect(await current(reply)).toBeUndefined()
    session = 's1'
    sink.message(response)
    const whole = await reply
    expect(whole.headers['mcp-session-id']).toBe('s1')
    expect(messagesIn(read(whole))).toEqual([log.value, response.value])
  })
})

describe('a stream outside of requests', () => {
  it('is open before anything comes and just ends', async () => {
    const { answer, sink, reply } = fixture({ opening: 'event: endpoint\ndata: /x\n\n' })
    answer.open()
    const stream = read(await reply)
    expect(stream.events).toEqual([{ event: 'endpoint', data: '/x' }])
    sink.message(log)
    expect(stream.events).toHaveLength(2)
    expect(stream.ended).toBe(false)
  })
})
