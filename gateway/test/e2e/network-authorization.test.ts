import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Authority, type Certificate, createAuthority } from '../support/certificates.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call, http2Client } from '../support/http-call.ts'
import { readToEnd, tcpConnect, tlsConnect } from '../support/tcp-servers.ts'
import { certificateFiles } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const spiffeId = 'spiffe://cluster.local/ns/default/sa/job'

let authority: Authority
let job: Certificate
let other: Certificate
let gateway: Gateway
let ports: { plain: number; secure: number; tcp: number; passed: number; upper: number }
let configWith: (rules: readonly unknown[] | undefined) => GatewayConfig

beforeAll(async () => {
  authority = createAuthority()
  job = authority.issue('job', spiffeId)
  other = authority.issue('other', 'spiffe://cluster.local/ns/default/sa/other')
  const [plain = 0, secure = 0, tcp = 0, passed = 0, upper = 0] = await freePorts(5)
  ports = { plain, secure, tcp, passed, upper }
  const { cert, key } = certificateFiles(authority.issue('a.test'), 'file')
  const { cert: root } = certificateFiles(authority, 'file')
  const backend = createServer((socket) => socket.pipe(socket).on('error', () => {})).listen(0, '127.0.0.1')
  endAfter('file', () => {
    backend.close()
  })
  await once(backend, 'listening')
  const backendPort = (backend.address() as AddressInfo).port
  configWith = (rules) => ({
    ...(rules && { frontendPolicies: { networkAuthorization: { rules } } }),
    gateways: {
      default: { port: plain },
      secure: { port: secure, tls: { cert, key, root } },
      tcp: { port: tcp, protocol: 'TCP' },
      passed: { port: passed, protocol: 'TLS' },
    },
    routes: [
      {
        gateways: ['default', 'secure'],
        policies: {
          directResponse: { status: 200, body: 'served' },
          authorization: { rules: [{ deny: 'has(source.subjectCn) && source.subjectCn == "other"' }] },
        },
      },
    ],
    tcpRoutes: [{ gateways: ['tcp', 'passed'], backends: [{ host: `127.0.0.1:${backendPort}` }] }],
    llm: { port: upper, models: [{ name: 'echo', provider: 'echo' }] },
  })
  gateway = await startGateway(configWith(undefined), { lifetime: 'file' })
})

/** Result of a request of HTTP/1 on a new connection. */
function answered(port: number, tls?: { cert?: string; key?: string }): Promise<number | string> {
  const secure = tls && { ca: authority.cert, name: 'a.test', ...tls }
  return call(port, '/', secure ? { tls: secure } : {}).then(
    ({ status }) => status,
    () => 'closed',
  )
}

async function viaHttp2(port: number): Promise<number | string> {
  const client = http2Client(port)
  return Promise.race([
    client.ask('/', { authority: 'a.test' }).then(
      ({ status }) => status,
      () => 'closed',
    ),
    new Promise<string>((resolve) => client.session.once('close', () => resolve('closed'))),
  ])
}

async function viaTcp(port: number): Promise<string> {
  try {
    const client = await tcpConnect(port)
    client.end('echo')
    return await readToEnd(client)
  } catch {
    return 'closed'
  }
}

describe('network authorization', () => {
  it('closes connections of every protocol before the first request', async () => {
    await gateway.reload(configWith([{ deny: 'cidr("127.0.0.0/8").containsIP(source.address)' }]))
    expect(await answered(ports.plain)).toBe('closed')
    expect(await viaHttp2(ports.plain)).toBe('closed')
    expect(await answered(ports.secure, job)).toBe('closed')
    expect(await answered(ports.upper)).toBe('closed')
    expect(['', 'closed']).toContain(await viaTcp(ports.tcp))
    expect(gateway.requests().filter(({ msg }) => msg === 'request')).toEqual([])
  })

  it('counts and logs a denial with its rule', async () => {
    await gateway.reload(configWith([{ require: 'source.port < 1' }]))
    expect(await answered(ports.plain)).toBe('closed')
    const line = await until('the denial is logged', () => gateway.stdout().includes('require rule 1'))
    expect(line).toBe(true)
    expect(gateway.stdout()).toMatch(
      /"client":"127\.0\.0\.1","outcome":"refused","refusedBy":"networkAuthorization: require rule 1"/,
    )
    expect(await gateway.metrics()).toMatch(
      /tollgate_authorization_refusals_total\{rule="network: require rule 1"\} [1-9]/,
    )
  })

  it('permits by allow rules, and continues to serve open connections after a reload', async () => {
    await gateway.reload(configWith([{ allow: `destination.port != ${ports.upper}` }]))
    const open = http2Client(ports.plain)
    expect((await open.ask('/', { authority: 'a.test' })).status).toBe(200)
    expect(await answered(ports.plain)).toBe(200)
    expect(await viaTcp(ports.tcp)).toBe('echo')
    expect(await answered(ports.upper)).toBe('closed')
    await gateway.reload(configWith([{ deny: 'true' }]))
    expect((await open.ask('/', { authority: 'a.test' })).status).toBe(200)
    expect(await answered(ports.plain)).toBe('closed')
  })

  it('reads the identity of client certificates', async () => {
    await gateway.reload(configWith([`source.tls.identity == "${spiffeId}"`]))
    expect(await answered(ports.secure, job)).toBe(200)
    expect(await answered(ports.secure, other)).toBe('closed')
    expect(await answered(ports.plain)).toBe('closed')
    await gateway.reload(
      configWith(['has(source.identity) && source.identity.serviceAccount in ["job", "other"]']),
    )
    expect(await answered(ports.secure, job)).toBe(200)
    // Rules on requests read the same facts.
    expect(await answered(ports.secure, other)).toBe(403)
  })

  it('applies the rules of a reload to handshakes in progress', async () => {
    await gateway.reload(configWith(['has(source.identity)', 'source.tls.serverName == ""']))
    const [secure, passed] = [connect(ports.secure, '127.0.0.1'), connect(ports.passed, '127.0.0.1')]
    await until('the connections are accepted', async () =>
      /admission_in_use\{resource="connections"\} (?:[2-9]|\d\d)/.test(await gateway.metrics()),
    )
    await gateway.reload(configWith([{ deny: 'source.address == "127.0.0.1"' }]))
    for (const socket of [secure, passed]) {
      socket.on('error', () => {})
      const client = connectTls({ socket, servername: 'a.test', rejectUnauthorized: false, ...job })
      client.on('error', () => {})
      client.once('secureConnect', () => client.write('GET / HTTP/1.1\r\nhost: a.test\r\n\r\n'))
      let received = ''
      client.on('data', (bytes) => {
        received += bytes
      })
      if (!socket.closed) await once(socket, 'close')
      expect(received).toBe('')
    }
    const refusal = /"serverName":"a\.test","outcome":"refused","refusedBy":"networkAuthorization: deny/
    await until('the refusal is logged', () => refusal.test(gateway.stdout()))
  })

  it('reads the server name of TLS that passes through', async () => {
    await gateway.reload(configWith(['has(destination.hostname) && destination.hostname == "a.test"']))
    // The echo server answers a ClientHello with itself: an error of TLS, not a closed connection.
    const failure = (servername: string) =>
      tlsConnect(ports.passed, { servername, rejectUnauthorized: false }).then(
        () => '',
        (error: { code?: string }) => error.code ?? '',
      )
    expect(await failure('a.test')).toMatch(/^ERR_SSL/)
    expect(await failure('b.test')).toBe('ECONNRESET')
  })
})

describe('settings of all listeners', () => {
  it('apply to TLS and HTTP, also of the own port of llm', async () => {
    const plain = configWith(undefined)
    const next = {
      ...plain,
      frontendPolicies: {
        http: { http1MaxHeaders: 4, maxConnectionDuration: '1h' },
        tls: { minVersion: 'TLS_V1_3', alpn: ['http/1.1'], handshakeTimeout: '3s' },
        tcp: { keepalives: { time: '30s' } },
      },
      llm: { ...Object(plain['llm']), tls: Object(Object(plain['gateways']).secure).tls },
    }
    await gateway.reload(next)
    const common = { host: '127.0.0.1', servername: 'a.test', ca: authority.cert, ...job }
    for (const port of [ports.secure, ports.upper]) {
      const client = connectTls({ ...common, port, ALPNProtocols: ['h2', 'http/1.1'] })
      await once(client, 'secureConnect')
      expect([client.alpnProtocol, client.getProtocol()]).toEqual(['http/1.1', 'TLSv1.3'])
      client.destroy()
      const old = connectTls({ ...common, port, maxVersion: 'TLSv1.2' })
      await expect(once(old, 'secureConnect')).rejects.toThrow(/version/)
    }
    const headers = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`x-${index}`, '1']))
    expect((await call(ports.plain, '/', { headers })).status).toBe(431)
    const models = await call(ports.upper, '/v1/models', {
      tls: { ca: authority.cert, name: 'a.test', ...job },
    })
    expect(models.status).toBe(200)
    await expect(call(ports.upper, '/v1/models')).resolves.toMatchObject({ status: 400 })
    await gateway.reload(plain)
    expect(await answered(ports.upper)).toBe(404)
  })
})
