import { createServer, type Server } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, LookupFunction } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import type { EgressPolicy } from '../egress/egress.ts'
import { readAll } from '../http/body.ts'
import { createHttpClient, type HttpClientOptions } from './http-client.ts'
import type { UpstreamConnection } from './send.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const refusing: EgressPolicy = {
  key: 'refusing',
  refuses: ({ host, address }) => `${host} is refused as ${address}`,
}
const allowing: EgressPolicy = { key: 'allowing', refuses: () => undefined }

const loopback: LookupFunction = (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }])

it.each(['127.0.0.1', 'localhost', '2130706433', '0x7f.1'])('refuses %s before it connects', async (host) => {
  const { port, connections } = await upstream()
  const send = client({ egress: refusing })
  await expect(send(`http://${host}:${port}`)).rejects.toMatchObject({
    code: 'upstream_connect',
    cause: { message: expect.stringMatching(/is refused as (?:127\.0\.0\.1|::1)$/) },
  })
  expect(connections()).toBe(0)
})

it.each(['http://upstream.test:PORT', 'https://upstream.test:PORT'])(
  'checks the address that a name of %s resolves to',
  async (origin) => {
    const { port, connections } = await upstream()
    const send = client({ egress: refusing, lookup: loopback })
    await expect(send(origin.replace('PORT', String(port)))).rejects.toMatchObject({
      cause: { message: 'upstream.test is refused as 127.0.0.1' },
    })
    expect(connections()).toBe(0)
  },
)

it('connects to the checked address when the name resolves to another later', async () => {
  const { port } = await upstream()
  let lookups = 0
  const rebinding: LookupFunction = (_host, _options, done) => {
    lookups += 1
    done(null, [{ address: lookups === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }])
  }
  const checked: string[] = []
  const recording: EgressPolicy = {
    key: '',
    refuses({ address }) {
      checked.push(address)
      return undefined
    },
  }
  const send = client({ egress: recording, lookup: rebinding })
  expect(await send(`http://upstream.test:${port}`)).toBe('hello')
  expect({ lookups, checked }).toEqual({ lookups: 1, checked: ['127.0.0.1'] })
})

it('a connection opened under one policy serves no other', async () => {
  const { port, connections } = await upstream()
  const send = client({ egress: allowing })
  const origin = `http://127.0.0.1:${port}`
  expect(await send(origin)).toBe('hello')
  expect(connections()).toBe(1)
  await expect(send(origin, { key: refusing.key, egress: refusing })).rejects.toMatchObject({
    cause: { message: '127.0.0.1 is refused as 127.0.0.1' },
  })
  expect(await send(origin, { key: allowing.key, egress: allowing })).toBe('hello')
  expect(connections()).toBe(2)
})

it('HTTP/2 is subject to the policy', async () => {
  const server = createHttp2Server()
  let connections = 0
  server.on('session', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  const { port } = server.address() as AddressInfo
  const connection = { key: '2', version: '2', egress: refusing } as const
  await expect(client({})(`http://localhost:${port}`, connection)).rejects.toMatchObject({
    code: 'upstream_connect',
  })
  expect(connections).toBe(0)
})

function client(options: Partial<HttpClientOptions>) {
  const { send, close } = createHttpClient({
    connectTimeoutMs: 2_000,
    keepAliveMs: 10_000,
    firstByteTimeoutMs: 2_000,
    idleTimeoutMs: 2_000,
    ...options,
  })
  closers.push(close)
  return async (origin: string, connection?: UpstreamConnection) => {
    const reply = await send({ origin, path: '/', method: 'GET', headers: {}, body: undefined, connection })
    return (await readAll(reply.body, 1_000, 'upstream_too_large')).toString()
  }
}

async function upstream(): Promise<{ port: number; connections(): number }> {
  let connections = 0
  const server: Server = createServer((_, response) => response.end('hello'))
  server.on('connection', () => {
    connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}
