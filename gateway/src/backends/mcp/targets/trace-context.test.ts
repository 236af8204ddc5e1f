import { describe, expect, it } from 'vitest'
import { createCancellation } from '../../../lib/cancellation.ts'
import type { Headers } from '../../../net/http/headers.ts'
import { idleFlow } from '../message/merged-sink.ts'
import type { Message } from '../message/message.ts'
import type { TargetSession } from './target.ts'
import { withTraceContext } from './trace-context.ts'

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const other = '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'

/** The request as the target receives it. */
function forwarded(text: string, headers: Headers): { text: string; headers: Headers } {
  let received: { text: string; headers: Headers } | undefined
  const session = {
    request(message: Message, context: { headers: Headers }) {
      received = { text: message.text, headers: context.headers }
      return idleFlow
    },
  } as unknown as TargetSession
  const target = withTraceContext({
    name: 'tools',
    sessionless: true,
    open: () => session,
    resume: () => undefined,
  })
  const sink = { message: () => true, mark() {}, end() {}, fail() {} }
  target
    .open()
    .request({ text, value: JSON.parse(text) }, { headers, cancellation: createCancellation() }, sink)
  if (received === undefined) throw new Error('nothing was sent')
  return received
}

describe('a trace context', () => {
  it.each([
    [
      '{"id":1,"method":"ping"}',
      `{"id":1,"method":"ping","params":{"_meta":{"traceparent":"${traceparent}"}}}`,
    ],
    [
      '{ "id": 1, "params": { "name": "a\\u0062", "_meta": {"x": 1e400} } }',
      `{ "id": 1, "params": { "name": "a\\u0062", "_meta": {"x": 1e400,"traceparent":"${traceparent}"} } }`,
    ],
    ['{"params":[1]}', '{"params":[1]}'],
    ['{"params":{"_meta":7}}', `{"params":{"_meta":{"traceparent":"${traceparent}"}}}`],
  ])('of headers is spliced into %s', (text, expected) => {
    expect(forwarded(text, { traceparent }).text).toBe(expected)
  })

  it('has its companions, unless they are too long', () => {
    const headers = { traceparent, tracestate: 'a=1', baggage: 'user=alice' }
    const { _meta } = JSON.parse(forwarded('{}', headers).text).params
    expect(_meta).toEqual(headers)
    const long = forwarded('{}', { traceparent, baggage: 'x'.repeat(9_000) })
    expect(JSON.parse(long.text).params).toEqual({ _meta: { traceparent } })
  })

  it('of the message replaces that of the headers', () => {
    const text = `{"params":{"_meta":{"traceparent":"${other}"}}}`
    const sent = forwarded(text, { traceparent, tracestate: 'a=1', accept: 'x' })
    expect(sent).toEqual({ text, headers: { traceparent: other, accept: 'x' } })
  })

  it.each(['', '00-0-0-0', `${traceparent}\n`, `00-${'0'.repeat(32)}-b7ad6b7169203331-01`])(
    'without a valid traceparent (%j) is not copied',
    (value) => {
      expect(forwarded('{}', { traceparent: value }).text).toBe('{}')
      const text = JSON.stringify({ params: { _meta: { traceparent: value } } })
      expect(forwarded(text, { accept: 'x' })).toEqual({ text, headers: { accept: 'x' } })
    },
  )
})
