import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp, createServer, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import {
  createTlsIdentity,
  httpAlpn,
  type ServerTls,
  type TlsIdentity,
} from '../../src/net/tls/server-tls.ts'
import { type Certificate, createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { startEdge, text } from '../support/edge.ts'
import { rawConnect } from '../support/raw-http.ts'
import { until } from '../support/wait.ts'

const authority = createAuthority()
const certificateA = authority.issue('a.test')
const certificateB = authority.issue('b.test')
const identityA = createTlsIdentity(certificateA)

function named(identities: Record<string, TlsIdentity>, alpn = httpAlpn): ServerTls {
  return { identityFor: (name) => identities[name ?? ''], alpn }
}

/** Resolves after the handshake, for both sides as far as observable. */
async function handshake(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', ca: authority.cert, ...options })
  endAfter('test', () => {
    socket.destroy()
  })
  await new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
  })
  socket.on('error', () => {})
  return socket
}

/** Response to one request of HTTP/1.1, or the error that ends the connection. */
async function ask(socket: TLSSocket): Promise<string> {
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  const failed = new Promise<string>((resolve) => socket.once('error', (error) => resolve(error.message)))
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(received)))
  socket.write('GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n')
  return Promise.race([failed, closed])
}

/** The first bytes of a client. */
async function clientHello(servername: string): Promise<Buffer> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const client = connect({
    port: typeof address === 'object' ? address?.port : 0,
    host: '127.0.0.1',
    servername,
  })
  client.on('error', () => {})
  const [socket]: Socket[] = await once(server, 'connection')
  const [bytes]: Buffer[] = socket === undefined ? [] : await once(socket, 'data')
  client.destroy()
  socket?.destroy()
  server.close()
  return bytes ?? Buffer.alloc(0)
}

describe('a TLS listener', () => {
  it('serves HTTP/1.1 and HTTP/2 as the client chooses, and knows the name it asked for', async () => {
    const { port, requests } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    const socket = await handshake(port, { servername: 'a.test', ALPNProtocols: ['http/1.1'] })
    expect(await ask(socket)).toContain('hello')
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority.cert, servername: 'a.test' })
    endAfter('test', () => session.destroy())
    const stream = session.request({ ':path': '/' })
    stream.setEncoding('utf8')
    expect(await once(stream, 'data')).toEqual(['hello'])
    expect(
      requests.map(({ version, connection }) => [version, connection.scheme, connection.serverName]),
    ).toEqual([
      ['1.1', 'https', 'a.test'],
      ['2.0', 'https', 'a.test'],
    ])
  })

  it('shows the certificate of the name that was asked for', async () => {
    const tls = named({ 'a.test': identityA, 'b.test': createTlsIdentity(certificateB) })
    const { port } = await startEdge(() => text('hello'), { tls })
    for (const servername of ['a.test', 'b.test']) {
      const socket = await handshake(port, { servername })
      expect(socket.getPeerCertificate().subject.CN).toBe(servername)
    }
  })

  it('refuses names it does not serve with the alert for that', async () => {
    const { port, requests } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    await expect(handshake(port, { servername: 'other.test' })).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME',
    })
    await expect(handshake(port, { checkServerIdentity: () => undefined })).rejects.toThrow()
    expect(requests).toEqual([])
  })

  it('refuses protocols it does not speak', async () => {
    const { port } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    await expect(handshake(port, { servername: 'a.test', ALPNProtocols: ['smtp'] })).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
    })
  })

  it('has versions for each name', async () => {
    const tls = named({
      'a.test': createTlsIdentity({ ...certificateA, minVersion: 'TLSv1.3' }),
      'b.test': createTlsIdentity({ ...certificateB, maxVersion: 'TLSv1.2' }),
    })
    const { port } = await startEdge(() => text('hello'), { tls })
    await expect(handshake(port, { servername: 'a.test', maxVersion: 'TLSv1.2' })).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    })
    expect((await handshake(port, { servername: 'a.test' })).getProtocol()).toBe('TLSv1.3')
    expect((await handshake(port, { servername: 'b.test' })).getProtocol()).toBe('TLSv1.2')
  })

  it('has key exchange groups for each name', async () => {
    const { port } = await startEdge(() => text('hello'), {
      tls: named({
        'a.test': createTlsIdentity({ ...certificateA, groups: ['P-384'] }),
        'b.test': createTlsIdentity({ ...certificateB, groups: ['X25519MLKEM768', 'X25519', 'P-256'] }),
      }),
    })
    const group = async (servername: string) => (await handshake(port, { servername })).getEphemeralKeyInfo()
    expect(await group('a.test')).toMatchObject({ name: 'secp384r1' })
    expect(await group('b.test')).not.toMatchObject({ name: 'secp384r1' })
    await expect(handshake(port, { servername: 'a.test', ecdhCurve: 'X25519' })).rejects.toThrow()
    expect(() => createTlsIdentity({ ...certificateA, groups: ['nonsense'] })).toThrow()
  })

  it('has ciphers for each name', async () => {
    const cipherSuites = ['ECDHE-ECDSA-AES256-GCM-SHA384', 'TLS_AES_256_GCM_SHA384']
    const { port } = await startEdge(() => text('hello'), {
      tls: named({ 'a.test': createTlsIdentity({ ...certificateA, cipherSuites }) }),
    })
    const newer = await handshake(port, { servername: 'a.test' })
    const older = await handshake(port, { servername: 'a.test', maxVersion: 'TLSv1.2' })
    expect([newer.getCipher().standardName, older.getCipher().name]).toEqual([
      'TLS_AES_256_GCM_SHA384',
      'ECDHE-ECDSA-AES256-GCM-SHA384',
    ])
    await expect(
      handshake(port, {
        servername: 'a.test',
        ciphers: 'TLS_CHACHA20_POLY1305_SHA256',
        minVersion: 'TLSv1.3',
      }),
    ).rejects.toThrow()
  })

  it('that verifies clients serves those of its authority and no others', async () => {
    const identity = createTlsIdentity({ ...certificateA, ca: authority.cert })
    const { port, requests } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identity }) })
    const good = authority.issue('client')
    const foreign = createAuthority('others').issue('client')
    async function as(client: Certificate | undefined, maxVersion: 'TLSv1.2' | 'TLSv1.3') {
      const socket = await handshake(port, { servername: 'a.test', maxVersion, ...client }).catch(
        () => undefined,
      )
      return socket ? ask(socket) : 'no handshake'
    }
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      expect(await as(good, version)).toContain('hello')
      expect(await as(foreign, version)).not.toContain('hello')
      expect(await as(undefined, version)).not.toContain('hello')
    }
    expect(requests).toHaveLength(2)
  })

  it('does not resume a session of one name where another asks for a client certificate', async () => {
    const tls = named({
      'a.test': identityA,
      'b.test': createTlsIdentity({ ...certificateB, ca: authority.cert }),
    })
    const { port, requests } = await startEdge(() => text('hello'), { tls })
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      let session: Buffer | undefined
      const first = connect({
        port,
        host: '127.0.0.1',
        ca: authority.cert,
        servername: 'a.test',
        maxVersion,
      })
      first.on('session', (latest) => {
        session = latest
      })
      expect(await ask(first)).toContain('hello')
      const resumed = await handshake(port, {
        servername: 'b.test',
        maxVersion,
        session,
      }).catch(() => undefined)
      expect(resumed ? await ask(resumed) : 'no handshake').not.toContain('hello')
    }
    expect(requests).toHaveLength(2)
  })

  it('resumes a session of another data plane, but not under other demands on clients', async () => {
    const ticketSecret = Buffer.alloc(32, 7)
    const start = (changes: object = {}) =>
      startEdge(() => text('hello'), {
        tls: named({ 'a.test': createTlsIdentity({ ...certificateA, ticketSecret, ...changes }) }),
      })
    const [one, other, strict] = await Promise.all([start(), start(), start({ ca: authority.cert })])
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { servername: 'a.test', maxVersion }
      let session: Buffer | undefined
      const first = connect({ ...options, port: one.port, host: '127.0.0.1', ca: authority.cert })
      first.on('session', (latest) => {
        session = latest
      })
      expect(await ask(first)).toContain('hello')
      const resumed = await handshake(other.port, { ...options, session })
      expect(resumed.isSessionReused()).toBe(true)
      expect(await ask(resumed)).toContain('hello')
      const refused = await handshake(strict.port, { ...options, session }).catch(() => undefined)
      expect(refused ? await ask(refused) : 'no handshake').not.toContain('hello')
    }
  })

  it('shows another certificate from the next connection on, and keeps those it has', async () => {
    let identity = identityA
    const { port } = await startEdge(() => text('hello'), {
      tls: { identityFor: () => identity, alpn: httpAlpn },
    })
    const old = await handshake(port, { servername: 'a.test' })
    identity = createTlsIdentity(authority.issue('a.test'))
    const next = await handshake(port, { servername: 'a.test' })
    expect(next.getPeerCertificate().serialNumber).not.toBe(old.getPeerCertificate().serialNumber)
    expect(await ask(old)).toContain('hello')
  })

  it('reports plain HTTP to the client', async () => {
    const { port } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    const client = await rawConnect(port)
    client.send('GET / HTTP/1.1\r\nhost: h\r\n\r\n')
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 [\s\S]*plain HTTP request sent to a TLS port/)
  })

  it.each([
    ['noise', Buffer.from([22, 9, 9, 0, 5, 1, 2, 3, 4, 5])],
    ['a broken hello', Buffer.from([22, 3, 1, 0, 5, 1, 0, 0, 1, 0])],
  ])('ends a connection that begins with %s', async (_, bytes) => {
    const { port } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    const client = await rawConnect(port)
    client.send(bytes)
    expect(Buffer.from(await client.closed(), 'latin1')[0]).toBe(21)
  })

  it('ends a connection that stays silent', async () => {
    const { port } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    const client = await rawConnect(port)
    client.send(Buffer.from([22, 3, 1]))
    expect(await client.closed(8000)).toBe('')
  })

  it('ends handshakes that do not go on, and those whose client has left', async () => {
    const { port } = await startEdge(() => text('hello'), { tls: named({ 'a.test': identityA }) })
    const hello = await clientHello('a.test')
    const [silent, leaving] = await Promise.all([rawConnect(port), rawConnect(port)])
    silent.send(hello)
    leaving.send(hello)
    leaving.socket.end()
    await Promise.all([silent.closed(13_000), leaving.closed(13_000)])
  })

  it('finishes pending requests in a drain', async () => {
    const answer = Promise.withResolvers<ReturnType<typeof text>>()
    const { port, server, requests } = await startEdge(() => answer.promise, {
      tls: named({ 'a.test': identityA }),
    })
    const asked = ask(await handshake(port, { servername: 'a.test' }))
    const silent = await rawConnect(port)
    await until('the request arrives', () => requests.length === 1)
    const drained = server.drain()
    await silent.closed(2000)
    answer.resolve(text('finished'))
    expect(await asked).toContain('finished')
    await drained
  })
})

describe('a TCP listener', () => {
  it('terminates TLS and reports the requested name', async () => {
    const { port, serve } = await startEdge(() => text(''))
    serve({
      kind: 'tcp',
      tls: named({ 'a.test': identityA }, []),
      readsServerName: false,
      connect: ({ socket, connection }) => socket.end(`${connection.serverName} from ${connection.address}`),
    })
    const socket = await handshake(port, { servername: 'a.test' })
    const [first] = await once(socket, 'data')
    expect(String(first)).toBe('a.test from 127.0.0.1')
  })

  it('reads the name of a handshake that passes through, and leaves every byte of it', async () => {
    const inner = await startEdge(() => text('from behind'), { tls: named({ 'a.test': identityA }) })
    const { port, serve } = await startEdge(() => text(''))
    const names: (string | undefined)[] = []
    serve({
      kind: 'tcp',
      tls: undefined,
      readsServerName: true,
      connect({ socket, connection }) {
        names.push(connection.serverName)
        const upstream = connectTcp(inner.port, '127.0.0.1')
        socket.pipe(upstream).pipe(socket)
        upstream.on('error', () => socket.destroy())
      },
    })
    const socket = await handshake(port, { servername: 'a.test', ALPNProtocols: ['http/1.1'] })
    expect(await ask(socket)).toContain('from behind')
    expect(names).toEqual(['a.test'])
  })

  it('that reads names closes connections without a handshake', async () => {
    const { port, serve } = await startEdge(() => text(''))
    let connected = 0
    serve({
      kind: 'tcp',
      tls: undefined,
      readsServerName: true,
      connect() {
        connected += 1
      },
    })
    const client = await rawConnect(port)
    client.send('GET / HTTP/1.1\r\n\r\n')
    expect(await client.closed()).toBe('')
    expect(connected).toBe(0)
  })
})

describe('an identity', () => {
  const other = authority.issue('other.test')

  it.each([
    ['cert: contains no certificate', { ...certificateA, cert: 'nothing' }],
    [
      'cert: contains a certificate that cannot',
      { ...certificateA, cert: certificateA.cert.replace(/^M.*$/m, 'AAAA') },
    ],
    ['key: contains no private key', { ...certificateA, key: 'nothing' }],
    ['key: is not the key of the certificate', { ...certificateA, key: other.key }],
    ['root: contains no certificate', { ...certificateA, ca: 'nothing' }],
    ['minTLSVersion: TLSv1.3 is above', { ...certificateA, minVersion: 'TLSv1.3', maxVersion: 'TLSv1.2' }],
    ['cipherSuites: ', { ...certificateA, cipherSuites: ['NO-SUCH-CIPHER'] }],
  ] as const)('that is invalid is reported with the invalid part: %s', (message, options) => {
    expect(() => createTlsIdentity(options)).toThrow(message)
  })
})
