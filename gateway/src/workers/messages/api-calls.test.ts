import { MessageChannel } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import type { ApiHandler } from '../../admin/admin.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { type BodySink, type BodySource, isSource, readAll } from '../../net/http/body.ts'
import { createApiCaller, serveApiCalls } from './api-calls.ts'
import { createCalls } from './calls.ts'
import type { PlaneApiReply } from './plane-protocol.ts'

const open: (() => void)[] = []

afterEach(() => {
  for (const close of open.splice(0)) close()
})

function linked(api: ApiHandler): { caller: ApiHandler; end(): void } {
  const { port1, port2 } = new MessageChannel()
  open.push(() => port1.close())
  createCalls(port2, { api: serveApiCalls(api) })
  const calls = createCalls(port1, {})
  const caller = createApiCaller(
    (request, transfer) => calls.call('api', request, transfer) as Promise<PlaneApiReply>,
  )
  return { caller, end: () => port1.close() }
}

const request = { method: 'GET', target: '/', headers: {}, body: undefined, address: '127.0.0.1' }

/** Writes chunks of 1 KiB as long as the sink accepts them. */
function endless() {
  const state: { written: number; isCancelled: boolean; sink: BodySink | undefined; cancelled(): void } = {
    written: 0,
    isCancelled: false,
    sink: undefined,
    cancelled() {},
  }
  function write(): void {
    for (;;) {
      state.written += 1
      if (state.sink?.write(Buffer.alloc(1024, state.written)) !== true) return
    }
  }
  const source: BodySource = {
    start(sink) {
      state.sink = sink
      write()
    },
    resume: write,
    cancel() {
      state.isCancelled = true
      state.cancelled()
    },
  }
  return { source, state }
}

describe('API calls between threads', () => {
  it('return a buffered body', async () => {
    const { caller } = linked(async () => ({ status: 201, headers: { a: 'b' }, body: Buffer.from('text') }))
    const reply = await caller(request)
    expect(reply).toMatchObject({ status: 201, headers: { a: 'b' } })
    expect(String(reply.body)).toBe('text')
  })

  it('stream a body in order', async () => {
    const chunks = Array.from({ length: 100 }, (_, index) => `chunk ${index}\n`)
    const { caller } = linked(async () => {
      let sink: BodySink | undefined
      const rest = [...chunks]
      function write(): void {
        for (let next = rest.shift(); next !== undefined; next = rest.shift())
          if (sink?.write(Buffer.from(next)) === false) return
        sink?.end()
      }
      const body: BodySource = {
        start(into) {
          sink = into
          write()
        },
        resume: write,
        cancel() {},
      }
      return { status: 200, headers: {}, body }
    })
    const { body } = await caller(request)
    expect(String(await readAll(body, 1_000_000, 'internal'))).toBe(chunks.join(''))
  })

  it('pause the source until the sink accepts more', async () => {
    const { source, state } = endless()
    const { caller } = linked(async () => ({ status: 200, headers: {}, body: source }))
    const { body } = await caller(request)
    if (!isSource(body)) throw new Error('expected a stream')
    let received = 0
    const full = Promise.withResolvers<void>()
    body.start({
      write() {
        received += 1
        if (received === 8) full.resolve()
        return false
      },
      end() {},
      fail() {},
    })
    await full.promise
    expect(state.written).toBe(8)
    body.cancel()
  })

  it('cancel the source if the receiver cancels, before and after its start', async () => {
    for (const isStarted of [false, true]) {
      const { source, state } = endless()
      const cancelled = new Promise<void>((resolve) => {
        state.cancelled = resolve
      })
      const { caller } = linked(async () => ({ status: 200, headers: {}, body: source }))
      const { body } = await caller(request)
      if (!isSource(body)) throw new Error('expected a stream')
      if (isStarted) body.start({ write: () => false, end() {}, fail() {} })
      body.cancel()
      await cancelled
      expect(state.isCancelled).toBe(true)
    }
  })

  it('fail the body with the error of the source', async () => {
    const body: BodySource = {
      start: (sink) => sink.fail(new Error('disk failed')),
      resume() {},
      cancel() {},
    }
    const { caller } = linked(async () => ({ status: 200, headers: {}, body }))
    const reply = await caller(request)
    await expect(readAll(reply.body, 1_000, 'internal')).rejects.toThrow('disk failed')
  })

  it('stream the body of a forwarded request to the main thread', async () => {
    const large = Buffer.alloc(3 * 1024 * 1024, 'a')
    const { caller } = linked(async ({ body }) => {
      const { byteLength } = await readAll(body, 10_000_000, 'request_too_large')
      return { status: 200, headers: {}, body: Buffer.from(String(byteLength)) }
    })
    const chunks = [large.subarray(0, 1_000_000), large.subarray(1_000_000)]
    const source: BodySource = {
      start(sink) {
        for (const chunk of chunks) sink.write(chunk)
        sink.end()
      },
      resume() {},
      cancel() {},
    }
    const reply = await caller({
      ...request,
      method: 'POST',
      target: '/api/forward/default/v1',
      body: source,
    })
    expect(String(reply.body)).toBe(String(large.byteLength))
  })

  it('cancel the call if the client disconnects before the response', async () => {
    const started = Promise.withResolvers<void>()
    const cancelled = Promise.withResolvers<void>()
    const { caller } = linked(async ({ cancellation }) => {
      cancellation?.onCancel(cancelled.resolve)
      started.resolve()
      await cancelled.promise
      return { status: 499, headers: {}, body: undefined }
    })
    const cancellation = createCancellation()
    const reply = caller({ ...request, cancellation })
    await started.promise
    cancellation.cancel()
    await cancelled.promise
    expect((await reply).status).toBe(499)
  })
})
