import { randomBytes } from 'node:crypto'
import { connect } from 'node:http2'
import { afterEach, describe, expect, it } from 'vitest'
import { until } from '../../../../test/support/wait.ts'
import type { Config } from '../../../config/schema.ts'
import { systemClock } from '../../../lib/clock.ts'
import { createYieldPoint } from '../../../lib/scheduling/yielding.ts'
import { createCertificateAuthority, issueServerCertificate } from '../certificates/authority.ts'
import { createPublisher } from '../server/publisher.ts'
import { openStreamServer, type StreamServerTimes } from '../server/server.ts'
import { createCachedVerification, type TokenVerdict } from '../server/verify-token.ts'
import { type ApplyOutcome, type StreamClientTimes, startStreamClient } from './client.ts'
import type { ReceivedConfig } from './received.ts'

const gateway = 'infra/edge'
const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {} }
const yieldPoint = createYieldPoint(systemClock)
const tools = { now: Date.now(), randomBytes }
const authority = createCertificateAuthority(tools)

type Controller = Awaited<ReturnType<typeof startController>>

async function startController(options: { port?: number; times?: Partial<StreamServerTimes> } = {}) {
  const publisher = createPublisher({ yieldPoint, onProxyChange() {} })
  const verdicts = new Map<string, TokenVerdict>()
  const verified = (expiresAt = Date.now() + 3_600_000): TokenVerdict => {
    return { kind: 'verified', namespace: 'infra', serviceAccount: 'edge', expiresAt }
  }
  verdicts.set('good', verified())
  const server = await openStreamServer({
    publisher,
    verify: createCachedVerification({
      verify: async (token) => verdicts.get(token) ?? { kind: 'refused', reason: 'unknown token' },
      clock: systemClock,
    }),
    serviceAccountOf: (key) => key.split('/')[1] ?? '',
    certificate: issueServerCertificate(authority, ['localhost'], tools),
    host: '127.0.0.1',
    port: options.port ?? 0,
    clock: systemClock,
    log,
    ...(options.times && { times: options.times }),
  })
  closers.push(server.close)
  return { publisher, server, verdicts, verified }
}

type ProxyOptions = {
  port: number
  token?: string
  start?: ReceivedConfig
  times?: Partial<StreamClientTimes>
  apply?: (received: ReceivedConfig) => ApplyOutcome | Promise<ApplyOutcome>
  random?: () => number
}

function startProxy({ port, token = 'good', start, times, apply, random = Math.random }: ProxyOptions) {
  const received: ReceivedConfig[] = []
  const reasons: string[] = []
  const client = startStreamClient({
    url: `https://localhost:${port}`,
    gateway,
    proxy: 'edge-1',
    id: randomBytes(16).toString('base64url'),
    start,
    readCa: async () => authority.certificate,
    readToken: async () => token,
    async apply(next) {
      received.push(next)
      return (await apply?.(next)) ?? { kind: 'accepted' }
    },
    onState: (state) => void (state.kind === 'disconnected' && reasons.push(state.reason)),
    onConfirmed() {},
    clock: systemClock,
    random,
    log,
    yieldPoint,
    times: { firstRetryMs: 20, maxRetryMs: 50, ...times },
  })
  closers.push(client.close)
  return { client, received, reasons }
}

function configOf(routes: number, host = 'a.example.com'): Config {
  return {
    gateways: { '80': { port: 80 } },
    routes: Array.from({ length: routes }, (_, index) => ({
      name: `route-${index}`,
      hostnames: [index === 0 ? host : 'b.example.com'],
      backends: [{ backend: 'one' }],
    })),
    backends: [
      { name: 'one', endpoints: [{ host: '10.0.0.1:80' }] },
      { name: 'two', host: '10.0.0.2:80' },
    ],
  }
}

function serving(controller: Controller) {
  return controller.publisher.proxies(gateway)[0]?.serving
}

describe('the configuration stream', () => {
  it('delivers a configuration and its changes, and reports the acknowledgements', async () => {
    const controller = await startController()
    const proxy = startProxy({ port: controller.server.port })
    const first = await controller.publisher.publish(gateway, configOf(300))
    await until('the first version serves', () => serving(controller) === first)
    const before = configOf(300)
    const next = await controller.publisher.publish(gateway, {
      ...before,
      backends: [{ name: 'one', endpoints: [{ host: '10.0.0.9:80' }] }, ...(before.backends ?? []).slice(1)],
    })
    await until('the second version serves', () => serving(controller) === next)
    const [one, two] = proxy.received
    expect(one?.config).toEqual(before)
    expect(two?.config.backends?.[0]).toEqual({ name: 'one', endpoints: [{ host: '10.0.0.9:80' }] })
    // Nodes without changes are the same objects.
    expect(two?.config.routes).toBe(one?.config.routes)
    expect(two?.config.backends?.[1]).toBe(one?.config.backends?.[1])
    expect(controller.publisher.proxies(gateway)).toMatchObject([{ name: 'edge-1', refused: undefined }])
  })

  it('reports the errors of a refused configuration, and the version that still serves', async () => {
    const controller = await startController()
    const proxy = startProxy({
      port: controller.server.port,
      apply: ({ config }) =>
        config.routes?.length === 2 ? { kind: 'refused', errors: ['routes: wrong'] } : { kind: 'accepted' },
    })
    const first = await controller.publisher.publish(gateway, configOf(1))
    await until('the first version serves', () => serving(controller) === first)
    const second = await controller.publisher.publish(gateway, configOf(2))
    await until('the refusal arrives', () => controller.publisher.proxies(gateway)[0]?.refused !== undefined)
    expect(controller.publisher.proxies(gateway)).toMatchObject([
      { serving: first, refused: { version: second, errors: ['routes: wrong'] } },
    ])
    const third = await controller.publisher.publish(gateway, configOf(3))
    await until('the third version serves', () => serving(controller) === third)
    expect(controller.publisher.proxies(gateway)[0]?.refused).toBeUndefined()
    expect(proxy.received.at(-1)?.config).toEqual(configOf(3))
  })

  it('continues after a restart of the controller without data if nothing has changed', async () => {
    const controller = await startController()
    const proxy = startProxy({ port: controller.server.port })
    const version = await controller.publisher.publish(gateway, configOf(5))
    await until('the version serves', () => serving(controller) === version)
    const { port } = controller.server
    await controller.server.close()
    const next = await startController({ port })
    await next.publisher.publish(gateway, configOf(5))
    await until('the proxy acknowledges again', () => serving(next) === version)
    // An empty change: the configuration is the same object.
    expect(proxy.received.every((one) => one === proxy.received[0])).toBe(true)
    const changed = await next.publisher.publish(gateway, configOf(6))
    await until('the change serves', () => serving(next) === changed)
    expect(proxy.received.at(-1)?.config).toEqual(configOf(6))
  })

  it.each([
    ['unknown', undefined, '401'],
    ['other', { kind: 'verified', namespace: 'infra', serviceAccount: 'other', expiresAt: 2 ** 50 }, '403'],
    ['foreign', { kind: 'verified', namespace: 'else', serviceAccount: 'edge', expiresAt: 2 ** 50 }, '403'],
    ['outage', { kind: 'unavailable', reason: 'the API server is away' }, '503'],
  ] as const)('refuses the token "%s"', async (token, verdict, status) => {
    const controller = await startController()
    if (verdict) controller.verdicts.set(token, verdict)
    await controller.publisher.publish(gateway, configOf(1))
    const proxy = startProxy({ port: controller.server.port, token })
    await until('the refusal arrives', () => proxy.reasons.length > 0)
    expect(proxy.reasons[0]).toContain(`the controller responded with ${status}`)
    expect(proxy.received).toEqual([])
  })

  it('ends with the token and continues with its successor', async () => {
    const controller = await startController()
    controller.verdicts.set('good', controller.verified(Date.now() + 1_500))
    const proxy = startProxy({ port: controller.server.port })
    const version = await controller.publisher.publish(gateway, configOf(1))
    await until('the version serves', () => serving(controller) === version)
    await until('the stream ends', () => proxy.reasons.length > 0)
    expect(proxy.reasons[0]).toBe('the token expires')
    expect(proxy.received).toHaveLength(1)
  })

  it('detects a controller without heartbeats', async () => {
    const controller = await startController({ times: { heartbeatMs: 60_000 } })
    const proxy = startProxy({ port: controller.server.port, times: { stallMs: 100 } })
    await until('the stall is detected', () => proxy.reasons.length > 0)
    expect(proxy.reasons[0]).toBe('the controller does not respond')
  })

  it('closes the stream of a proxy without acknowledgements', async () => {
    const controller = await startController({ times: { silentMs: 400 } })
    const proxy = startProxy({ port: controller.server.port, times: { acknowledgeMs: 60_000 } })
    await until('the stream is closed', () => proxy.reasons.length > 0)
    expect(proxy.reasons[0]).toBe('no acknowledgement in time')
  })

  it('sends the newest configuration to a slow proxy, without those before it', async () => {
    const controller = await startController()
    const gate = Promise.withResolvers<void>()
    const proxy = startProxy({
      port: controller.server.port,
      async apply() {
        await gate.promise
        return { kind: 'accepted' }
      },
    })
    await controller.publisher.publish(gateway, bulky(0))
    await until('the first version is being applied', () => proxy.received.length === 1)
    let last = ''
    for (let round = 1; round <= 40; round++) last = await controller.publisher.publish(gateway, bulky(round))
    gate.resolve()
    await until('the last version serves', () => serving(controller) === last)
    expect(proxy.received.at(-1)?.config).toEqual(bulky(40))
    expect(proxy.received.length).toBeLessThan(40)
  })

  it('delays attempts while the configurations of a controller are broken', async () => {
    const { publisher, server } = await startController()
    const config = configOf(1)
    await publisher.publish(gateway, config)
    // Another content than that of the version.
    Object.assign(config.routes?.[0] ?? {}, { hostnames: ['other.example.com'] })
    const startedAt = performance.now()
    const times = { firstRetryMs: 50, maxRetryMs: 10_000 }
    const { reasons, received } = startProxy({ port: server.port, times, random: () => 0.99 })
    await until('broken streams', () => reasons.length >= 5)
    // 50 + 100 + 200 + 400 ms; without growth 200 ms.
    expect(performance.now() - startedAt).toBeGreaterThan(700)
    expect(received).toEqual([])
  })

  it('closes a connection whose request does not end', async () => {
    const { server } = await startController({ times: { idleMs: 50 } })
    const session = connect(`https://localhost:${server.port}`, { ca: authority.certificate })
    session.on('error', () => {})
    const request = session.request({
      ':method': 'POST',
      ':path': `/v1/ack?gateway=${gateway}&proxy=edge-1&id=0123456789abcdef`,
      authorization: 'Bearer good',
    })
    request.on('error', () => {})
    request.write('{')
    await until('the end of the connection', () => session.destroyed)
  })
})

/** Each round replaces 400 KB that do not compress. */
function bulky(round: number): Config {
  return {
    routes: Array.from({ length: 40 }, (_, index) => ({
      name: `route-${index}`,
      hostnames: [noise(round * 100 + index)],
    })),
  }
}

function noise(seed: number): string {
  let state = seed + 1
  let text = ''
  while (text.length < 10_000) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    text += state.toString(36)
  }
  return text
}
