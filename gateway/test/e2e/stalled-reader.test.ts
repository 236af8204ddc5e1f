import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import type { BodySource } from '../../src/net/http/body.ts'
import { type Delivery, defaultServerLimits } from '../../src/net/http/incoming-request.ts'
import type { Reply } from '../../src/net/http-client/send.ts'
import { listen } from '../../src/net/listener/listener.ts'
import { defaultAdmission } from '../support/admission.ts'
import { endAfter } from '../support/cleanup.ts'
import { rawConnect } from '../support/raw-http.ts'
import { until } from '../support/wait.ts'

const stallMs = 300
const piece = Buffer.alloc(64 * 1024, 'x')

/** An upstream with an endless response. */
function endless(): BodySource & { cancelled: boolean } {
  let pump = () => {}
  const source = {
    cancelled: false,
    start(sink: Parameters<BodySource['start']>[0]) {
      pump = () => {
        while (!source.cancelled && sink.write(piece));
      }
      setImmediate(pump)
    },
    resume: () => pump(),
    cancel() {
      source.cancelled = true
    },
  }
  return source
}

async function serve(answers: (path: string) => Reply | Promise<Reply>, stalledReaderMs = stallMs) {
  const deliveries: Delivery[] = []
  const server = await listen({
    admission: defaultAdmission(),
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    limits: { ...defaultServerLimits, stalledReaderMs },
    serve: () => ({
      kind: 'http',
      tls: undefined,
      handle: ({ target }) => ({
        reply: Promise.resolve(answers(target)),
        end: (delivery) => deliveries.push(delivery),
      }),
    }),
  })
  endAfter('test', () => server.close())
  return { port: server.port, deliveries }
}

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nhost: gateway\r\n\r\n`
}

describe('a client that stops reading', () => {
  it('is given up after the time limit, and its stream with it', async () => {
    const source = endless()
    const { port, deliveries } = await serve(() => ({ status: 200, headers: {}, body: source }))
    const client = await rawConnect(port)
    client.socket.pause()
    client.send(get('/'))
    await until('the exchange ends', () => deliveries.length === 1)
    expect(source.cancelled).toBe(true)
    expect(deliveries[0]?.complete).toBe(false)
  })

  it('is given up when the answer was handed over whole', async () => {
    const body = Buffer.alloc(64 * 1024 * 1024)
    const { port, deliveries } = await serve(() => ({ status: 200, headers: {}, body }))
    const client = await rawConnect(port)
    client.socket.pause()
    client.send(get('/'))
    await until('the exchange ends', () => deliveries.length === 1)
    expect(deliveries[0]?.complete).toBe(false)
  })

  it('is given up when the answer had to wait for an earlier one on the connection', async () => {
    const first = Promise.withResolvers<Reply>()
    const source = endless()
    const { port, deliveries } = await serve((path) =>
      path === '/first' ? first.promise : { status: 200, headers: {}, body: source },
    )
    const client = await rawConnect(port)
    client.socket.pause()
    client.send(get('/first') + get('/second'))
    // Longer than the limit: waiting for the gateway is no fault of the client.
    await new Promise((resolve) => setTimeout(resolve, 2 * stallMs))
    expect(deliveries).toEqual([])
    first.resolve({ status: 200, headers: {}, body: Buffer.from('first') })
    await until('both exchanges end', () => deliveries.length === 2)
    expect(source.cancelled).toBe(true)
  })

  it('is not given up while it reads, however slowly', async () => {
    const source = endless()
    const longStallMs = 5 * stallMs
    const { port, deliveries } = await serve(() => ({ status: 200, headers: {}, body: source }), longStallMs)
    const client = await rawConnect(port)
    client.send(get('/'))
    const reading = setInterval(() => {
      client.socket.resume()
      setImmediate(() => client.socket.pause())
    }, 50)
    await new Promise((resolve) => setTimeout(resolve, 2 * longStallMs))
    clearInterval(reading)
    expect(deliveries).toEqual([])
  })
})
