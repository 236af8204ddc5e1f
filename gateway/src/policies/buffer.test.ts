import { describe, expect, it } from 'vitest'
import { fixtureExchange } from '../../test/fixtures/pipeline.ts'
import type { BodySink, BodySource } from '../net/http/body.ts'
import { type BufferConfig, checkBuffer, compileBuffer } from './buffer.ts'

/** A source of chunks with the end that it is created with. */
function sourceOf(chunks: readonly string[], end: 'complete' | 'broken' = 'complete') {
  const state = { cancelled: false, read: 0 }
  let sink: BodySink | undefined
  function flow() {
    while (state.read < chunks.length) {
      const chunk = chunks[state.read++] ?? ''
      if (sink?.write(Buffer.from(chunk)) === false) return
    }
    if (end === 'complete') sink?.end()
    else sink?.fail(new Error('broken'))
    sink = undefined
  }
  const source: BodySource = {
    start(reader) {
      sink = reader
      queueMicrotask(flow)
    },
    resume: () => queueMicrotask(flow),
    cancel() {
      state.cancelled = true
      sink = undefined
    },
  }
  return { source, state }
}

async function request(config: BufferConfig['request'], body: BodySource) {
  const exchange = Object.assign(fixtureExchange({ method: 'POST' }), { body })
  const reply = await compileBuffer({ request: config }, 8).onRequest?.(exchange)
  return { exchange, reply }
}

describe('buffer of requests', () => {
  it('reads a body within the limit', async () => {
    const { exchange, reply } = await request({ maxBytes: 6 }, sourceOf(['abc', 'def']).source)
    expect(reply).toBeUndefined()
    expect(String(exchange.body)).toBe('abcdef')
  })

  it('refuses a larger body and cancels it', async () => {
    const { source, state } = sourceOf(['abc', 'def', 'ghi', 'jkl'])
    const { reply } = await request({}, source)
    expect(reply?.status).toBe(413)
    expect(state).toEqual({ cancelled: true, read: 3 })
  })

  it('streams a larger body with failOpen', async () => {
    const { source } = sourceOf(['abc', 'def', 'ghi', 'jkl'])
    const { exchange, reply } = await request({ failureMode: 'failOpen' }, source)
    expect(reply).toBeUndefined()
    const chunks: string[] = []
    await new Promise<void>((resolve, reject) => {
      const { body } = exchange
      if (body === undefined || body instanceof Uint8Array) throw new Error('not a stream')
      body.start({ write: (chunk) => chunks.push(String(chunk)) > 0, end: () => resolve(), fail: reject })
    })
    expect(chunks.join('')).toBe('abcdefghijkl')
  })

  it('ignores upgrades and requests without a body', () => {
    const policy = compileBuffer({ request: {} }, 8)
    expect(policy.onRequest?.(fixtureExchange({}))).toBeUndefined()
    const upgrade = Object.assign(fixtureExchange({}), { upgrade: 'websocket', body: sourceOf(['a']).source })
    expect(policy.onRequest?.(upgrade)).toBeUndefined()
  })
})

describe('buffer of responses', () => {
  const reply = (body: BodySource) => ({ status: 200, headers: { 'content-type': 'text/plain' }, body })
  const policy = compileBuffer({ response: {} }, 8)

  it('reads a body within the limit', async () => {
    const read = await policy.onReply?.(fixtureExchange({}), reply(sourceOf(['abc', 'def']).source))
    expect(String(read?.body)).toBe('abcdef')
  })

  it('refuses a larger body with 502 and cancels it', async () => {
    const { source, state } = sourceOf(['abc', 'def', 'ghi', 'jkl'])
    const refused = await policy.onReply?.(fixtureExchange({}), reply(source))
    expect(refused?.status).toBe(502)
    expect(state.cancelled).toBe(true)
  })

  it('fails if the body is incomplete', async () => {
    const pending = policy.onReply?.(fixtureExchange({}), reply(sourceOf(['abc'], 'broken').source))
    await expect(pending).rejects.toThrow('broken')
  })
})

it('reports a policy without parts', () => {
  const messages: string[] = []
  checkBuffer({}, (_, message) => messages.push(message))
  expect(messages).toEqual(['must have request or response'])
})
