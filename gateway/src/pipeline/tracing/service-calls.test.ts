import { describe, expect, it } from 'vitest'
import { type GrpcCallOptions, GrpcError } from '../../net/grpc-client.ts'
import type { Headers } from '../../net/http/headers.ts'
import { sendToService, startStream, tracedCall, traceMetadata } from './service-calls.ts'
import type { RequestTrace } from './trace.ts'

const path = '/envoy.service.auth.v3.Authorization/Check'

function traceOf(isSampled: boolean): RequestTrace {
  let spans = 0
  return {
    context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled, traceState: 'vendor=1' },
    parentSpanId: undefined,
    isSampled,
    calls: [],
    ids: { traceId: () => 'f'.repeat(32), spanId: () => String(++spans).padStart(16, '0') },
    clock: { now: () => 5, monotonic: () => 5 },
  }
}

function recordedCall(answer: () => Promise<Uint8Array> = async () => new Uint8Array(1)) {
  const seen: GrpcCallOptions[] = []
  const call = tracedCall(path, (_, options) => {
    seen.push(options)
    return answer()
  })
  return { call, seen }
}

const message = new Uint8Array()

describe('calls of services', () => {
  it('are unchanged without a trace', async () => {
    const { call, seen } = recordedCall()
    const options = { deadlineMs: 1, metadata: { a: 'b' } }
    await call(message, options)
    expect(seen[0]).toBe(options)
  })

  it('have an ended span, and its context in their metadata', async () => {
    const { call, seen } = recordedCall()
    const trace = traceOf(true)
    await call(message, { deadlineMs: 1, metadata: { authorization: 'x' }, trace })
    expect(seen[0]?.metadata).toEqual({
      authorization: 'x',
      traceparent: `00-${'a'.repeat(32)}-0000000000000001-01`,
      tracestate: 'vendor=1',
    })
    expect(trace.calls[0]).toMatchObject({
      name: 'envoy.service.auth.v3.Authorization/Check',
      endedAt: 5,
      error: undefined,
      attributes: [
        ['rpc.system', 'grpc'],
        ['rpc.service', 'envoy.service.auth.v3.Authorization'],
        ['rpc.method', 'Check'],
        ['rpc.grpc.status_code', 0],
      ],
    })
  })

  it('have an error with the status of a failure', async () => {
    const { call } = recordedCall(() => Promise.reject(new GrpcError(14, 'canary detail')))
    const trace = traceOf(true)
    await expect(call(message, { deadlineMs: 1, trace })).rejects.toThrow('canary')
    expect(trace.calls[0]).toMatchObject({ endedAt: 5, error: 'gRPC status 14' })
  })

  it('forward the context of a request that is not sampled, without a span', async () => {
    const { call, seen } = recordedCall()
    const trace = traceOf(false)
    await call(message, { deadlineMs: 1, trace })
    expect(seen[0]?.metadata?.['traceparent']).toMatch(/-00$/)
    expect(startStream(trace, path)).toBeUndefined()
    expect(trace.calls).toEqual([])
  })

  it('over HTTP have a span that ends at the head of the response', async () => {
    const trace = traceOf(true)
    const headers: Headers = {}
    const request = {
      origin: 'http://a:80',
      path: '/check?secret=1',
      method: 'POST',
      headers,
      body: undefined,
    }
    await sendToService(trace, request as never, async () => ({ status: 403, headers: {}, body: undefined }))
    expect(trace.calls[0]).toMatchObject({ endedAt: 5, error: '' })
    expect(JSON.stringify(trace.calls)).not.toContain('secret')
    expect(headers['traceparent']).toContain(trace.calls[0]?.context.spanId)
  })

  it('as streams have the context in their metadata', () => {
    const trace = traceOf(true)
    const span = startStream(trace, path)
    expect(traceMetadata(trace, span)[0]).toEqual([
      'traceparent',
      expect.stringContaining(span?.context.spanId ?? '-'),
    ])
    expect(traceMetadata(undefined, undefined)).toEqual([])
  })
})
