import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createPlainServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { createAuthority } from '../../../test/support/certificates.ts'
import { endAfter } from '../../../test/support/cleanup.ts'
import { listening } from '../../../test/support/listening.ts'
import { anywhere, type EgressPolicy } from '../egress/egress.ts'
import type { UpstreamTls } from '../http-client/send.ts'
import { createOpenSocket, type OpenedSocket, type SocketTarget } from './open-socket.ts'

const authority = createAuthority()

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('TLS with %s', (version) => {
  it('offers HTTP/1.1 and resumes sessions', async () => {
    const { open, seen } = await target(version, { serverName: 'right.test' })
    for (let count = 0; count < 3; count++) expect((await open()).kind).toBe('open')
    expect(seen[0]).toEqual({ resumed: false, protocol: 'http/1.1', name: 'right.test' })
    expect(seen.at(-1)).toMatchObject({ resumed: true, protocol: 'http/1.1' })
  })

  it.each([
    ['another server name', { serverName: 'wrong.test' }],
    ['other accepted names', { serverName: 'right.test', names: ['wrong.test'] }],
    ['an unknown authority', { serverName: 'right.test', ca: createAuthority().cert }],
    ['an unusable key', { serverName: 'right.test', cert: authority.cert, key: 'x' }],
  ])('fails for %s, every time', async (_, tls) => {
    const { open } = await target(version, tls)
    for (let count = 0; count < 3; count++) expect((await open()).kind).toBe('failed')
  })

  it.each([
    ['any certificate', { insecure: 'any', ca: createAuthority().cert }],
    ['any name', { insecure: 'any-name' }],
    ['one of the accepted names', { names: ['wrong.test', 'right.test'] }],
  ] as const)('accepts %s, where configured', async (_, tls) => {
    const { open } = await target(version, { serverName: 'wrong.test', ...tls })
    expect((await open()).kind).toBe('open')
  })

  it('presents a certificate', async () => {
    const own = authority.issue('client.test')
    const required = { requestCert: true, ca: authority.cert }
    const { open } = await target(version, { serverName: 'right.test', ...own }, required)
    expect(await open()).toMatchObject({ kind: 'open', welcome: 'client.test' })
  })
})

it('a connection that takes too long fails', async () => {
  const { options } = await target('TLSv1.3', { serverName: 'right.test' })
  const stuck = { ...options, host: 'right.test', lookup() {}, timeoutMs: 20 }
  const opened = await openOnce(stuck)
  expect(opened).toMatchObject({ kind: 'failed', error: { message: 'no connection within 20 ms' } })
})

it('a refused address is never connected to', async () => {
  const egress: EgressPolicy = { key: '', refuses: () => 'refused here' }
  const { options, seen } = await target('TLSv1.3', { serverName: 'right.test' })
  for (const host of ['127.0.0.1', 'localhost']) {
    expect(await openOnce({ ...options, host, egress })).toMatchObject({ error: { message: 'refused here' } })
  }
  expect(seen).toEqual([])
})

it('a socket is connected to only if the policy permits it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-socket-'))
  endAfter('test', () => rmSync(folder, { recursive: true }))
  const socketPath = join(folder, 'a.sock')
  const server = createPlainServer((socket) => socket.end('welcome')).listen(socketPath)
  endAfter('test', () => void server.close())
  await once(server, 'listening')
  const { options } = await target('TLSv1.3', {})
  const plain = { ...options, isSecure: false, tls: undefined, socketPath }
  expect(await openOnce({ ...plain, egress: { ...anywhere, allowsSockets: true } })).toMatchObject({
    kind: 'open',
    welcome: 'welcome',
  })
  expect(await openOnce(plain)).toMatchObject({
    kind: 'failed',
    error: { code: 'ERR_EGRESS_REFUSED', message: expect.stringContaining(`unix:${socketPath}`) },
  })
})

it('an abandoned attempt reports nothing', async () => {
  const { options } = await target('TLSv1.3', { serverName: 'right.test' })
  let reports = 0
  createOpenSocket(options)(() => {
    reports += 1
  }).abandon()
  expect((await openOnce(options)).kind).toBe('open')
  expect(reports).toBe(0)
})

async function target(version: 'TLSv1.2' | 'TLSv1.3', tls: UpstreamTls, server: TlsOptions = {}) {
  const seen: { resumed: boolean; protocol: string | false | null; name: unknown }[] = []
  const listener = createServer({
    ...authority.issue('right.test'),
    minVersion: version,
    maxVersion: version,
    ALPNProtocols: ['h2', 'http/1.1'],
    ...server,
  })
  listener.on('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => {})
    seen.push({ resumed: socket.isSessionReused(), protocol: socket.alpnProtocol, name: socket.servername })
    socket.write(String(socket.getPeerCertificate()?.subject?.CN))
  })
  listener.on('tlsClientError', () => {})
  const port = await listening(listener)
  endAfter('test', () => void listener.close())
  const options: SocketTarget = {
    host: '127.0.0.1',
    port,
    isSecure: true,
    tls: { ca: authority.cert, ...tls },
    timeoutMs: 5_000,
    egress: anywhere,
    lookup: undefined,
  }
  const openSocket = createOpenSocket(options)
  return { options, seen, open: () => opened(openSocket) }
}

function openOnce(options: SocketTarget) {
  return opened(createOpenSocket(options))
}

/** Opens a connection and waits for its first data, with which session tickets arrive. */
async function opened(openSocket: ReturnType<typeof createOpenSocket>) {
  const result = await new Promise<OpenedSocket>((resolve) => openSocket(resolve))
  if (result.kind === 'failed') return result
  const { socket } = result
  endAfter('test', () => void socket.destroy())
  socket.on('error', () => {})
  const welcome = await new Promise((resolve) => socket.once('data', resolve))
  return { ...result, welcome: String(welcome) }
}
