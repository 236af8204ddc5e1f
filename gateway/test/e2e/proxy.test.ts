import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { freePorts } from '../support/free-port.ts'
import { liveHeap } from '../support/live-heap.ts'
import { startMockServer } from '../support/mock-server.ts'
import { type GatewayProxy, proxySessionKey, startProxy } from '../support/proxy.ts'
import {
  type StreamController,
  serviceAccountToken,
  startStreamController,
} from '../support/stream-controller.ts'
import { until } from '../support/wait.ts'

const copyName = 'configuration.enc'

/** One route with a fixed answer. */
function configOf({ config, port }: GatewayProxy, answer: string): Config {
  return config({
    gateways: { default: { port } },
    routes: [{ name: 'HTTPRoute/infra/a/0', policies: { directResponse: { status: 200, body: answer } } }],
  })
}

/** One route to a Service, which has one server. */
function serviceConfig({ config, port }: GatewayProxy, upstream: string): Config {
  return config({
    gateways: { default: { port } },
    routes: [
      { name: 'HTTPRoute/infra/a/0', backends: [{ backend: 'Service/infra/a:80' }] },
      {
        name: 'HTTPRoute/infra/b/0',
        matches: [{ path: { exact: '/b' } }],
        policies: { directResponse: { status: 200 } },
      },
    ],
    backends: [{ name: 'Service/infra/a:80', endpoints: [{ host: upstream }] }],
  })
}

async function answerOf(url: string): Promise<string> {
  const response = await fetch(url)
  return `${response.status} ${await response.text()}`
}

function logged({ stdout }: GatewayProxy, message: string): boolean {
  return stdout().includes(`"msg":"${message}"`)
}

const refusedNames = {
  'metadata.example': '169.254.169.254',
  'azure.example': '168.63.129.16',
  'mapped.example': '::ffff:169.254.169.254',
  'own.example': '127.0.0.1',
}

function logsRefusal({ stdout, port }: GatewayProxy, host: string): boolean {
  const isOwn = host === 'own.example' || host === 'localhost'
  const reason = isOwn ? 'is an address of this machine' : 'is a link-local or metadata address'
  const lines = stdout().split('\n')
  return lines.some((line) => line.includes(`${host}:${port}`) && line.includes(reason))
}

/** A Config with a route to each host, and one with a Service on this machine. */
function hostsConfig({ config, port }: GatewayProxy, hosts: readonly string[], service: string): Config {
  return config({
    gateways: { default: { port } },
    routes: [
      ...hosts.map((host) => ({
        name: host,
        matches: [{ path: { exact: `/${host}` } }],
        backends: [{ backend: host }],
      })),
      { name: 'service', backends: [{ backend: 'Service/infra/a:80' }] },
    ],
    backends: [
      ...hosts.map((host) => ({ name: host, host: `${host}:${port}` })),
      { name: 'Service/infra/a:80', endpoints: [{ host: service }] },
    ],
  })
}

async function copyIsWritten(proxy: GatewayProxy): Promise<void> {
  await until('the copy is written', () => readdirSync(proxy.folder).includes(copyName))
}

async function servingProxy(controller: StreamController): Promise<GatewayProxy> {
  const proxy = await startProxy(controller)
  await controller.serve(configOf(proxy, 'one'))
  await proxy.ready()
  return proxy
}

describe('tollgate proxy', () => {
  it('serves once the controller has sent a configuration, and follows its changes', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller)
    await until('the proxy connects', () => controller.proxies().length === 1)
    expect(await proxy.isReady()).toBe(false)
    const first = await controller.serve(configOf(proxy, 'one'))
    await proxy.ready()
    expect(await answerOf(proxy.url)).toBe('200 one')
    expect(await proxy.status()).toMatchObject({ connected: true, version: first, source: 'controller' })
    expect(await proxy.metrics()).toMatch(/^tollgate_config_stream_connected 1$/m)
    await controller.serve(configOf(proxy, 'two'))
    expect(await answerOf(proxy.url)).toBe('200 two')
  })

  it('follows the endpoints of a Service', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller)
    const one = await startMockServer((_, response) => response.end('one'))
    const two = await startMockServer((_, response) => response.end('two'))
    await controller.serve(serviceConfig(proxy, `127.0.0.1:${one.port}`))
    await proxy.ready()
    expect(await answerOf(proxy.url)).toBe('200 one')
    await controller.serve(serviceConfig(proxy, `127.0.0.1:${two.port}`))
    expect(await answerOf(proxy.url)).toBe('200 two')
  })

  // The resolver of tests is not loaded into threads: with two data planes hosts need no resolution by it.
  it.each([
    ['1', [...Object.keys(refusedNames), '169.254.169.254', 'localhost']],
    ['2', ['169.254.169.254', '168.63.129.16', 'localhost']],
  ])(
    'with %s data planes refuses metadata addresses and names of its own machine',
    async (workers, hosts) => {
      const controller = await startStreamController()
      const proxy = await startProxy(controller, {
        nodeFlags: ['--import', fileURLToPath(new URL('../support/resolver.mjs', import.meta.url))],
        env: { TEST_NAMES: JSON.stringify(refusedNames), WORKER_THREADS: workers },
      })
      const server = await startMockServer((_, response) => response.end('one'))
      await controller.serve(hostsConfig(proxy, hosts, `127.0.0.1:${server.port}`))
      await proxy.ready()
      for (const host of hosts) {
        expect((await fetch(`${proxy.url}/${host}`)).status).toBe(503)
        await until(`the refusal of ${host} is logged`, () => logsRefusal(proxy, host))
      }
      expect(await answerOf(proxy.url)).toBe('200 one')
    },
  )

  it('has no more live objects after many changes', async () => {
    const [inspectorPort = 0] = await freePorts(1)
    const controller = await startStreamController()
    const proxy = await startProxy(controller, { nodeFlags: [`--inspect=127.0.0.1:${inspectorPort}`] })
    const edited = (edit: number) =>
      proxy.config({
        gateways: { default: { port: proxy.port } },
        routes: Array.from({ length: 1_000 }, (_, index) => ({
          name: `r${index}`,
          hostnames: [`host-${index}${index === edit % 10 ? `-${edit}` : ''}.example`],
          backends: [{ backend: 'a' }],
        })),
        backends: [{ name: 'a', endpoints: [{ host: '127.0.0.1:1' }] }],
      })
    for (let edit = 0; edit < 10; edit++) await controller.serve(edited(edit))
    const before = await liveHeap(inspectorPort)
    for (let edit = 10; edit < 50; edit++) await controller.serve(edited(edit))
    // 40 configurations of 1,000 routes would be more than 50 MB.
    expect((await liveHeap(inspectorPort)) - before).toBeLessThan(5_000_000)
  }, 120_000)

  it('reports the reasons of a refused configuration, and continues with the previous one', async () => {
    const controller = await startStreamController()
    const proxy = await servingProxy(controller)
    const broken = configOf(proxy, 'two')
    const version = await controller.publish({
      ...broken,
      routes: [
        { name: 'HTTPRoute/infra/b/0', gateways: 'missing', policies: { directResponse: { status: 200 } } },
      ],
    })
    await until('the refusal arrives', () => controller.proxies()[0]?.refused?.version === version)
    expect(controller.proxies()[0]?.refused?.errors.join()).toContain('routes[0]')
    expect(await answerOf(proxy.url)).toBe('200 one')
    await controller.serve(configOf(proxy, 'three'))
    expect(await answerOf(proxy.url)).toBe('200 three')
    expect(controller.proxies()[0]?.refused).toBeUndefined()
  })

  it('waits for another configuration if it refuses the first one', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller)
    const version = await controller.publish({ ...configOf(proxy, 'one'), routes: [{ gateways: 'missing' }] })
    await until('the refusal arrives', () => controller.proxies()[0]?.refused?.version === version)
    expect(await proxy.isReady()).toBe(false)
    await controller.serve(configOf(proxy, 'two'))
    await proxy.ready()
    expect(await answerOf(proxy.url)).toBe('200 two')
  })

  it('serves during an outage of the controller and states its age', async () => {
    const controller = await startStreamController()
    const proxy = await servingProxy(controller)
    await controller.close()
    await until('the proxy notices', async () => !(await proxy.status()).connected)
    expect(await answerOf(proxy.url)).toBe('200 one')
    const status = await proxy.status()
    expect(status.ageSeconds).toBeGreaterThanOrEqual(0)
    expect(status.lastError).toBeDefined()
    expect(await proxy.metrics()).toMatch(/^tollgate_config_stream_connected 0$/m)
    expect(await proxy.metrics()).toMatch(/^tollgate_config_confirmed_timestamp_seconds \d{10}/m)
    const again = await startStreamController({ again: controller })
    await again.serve(configOf(proxy, 'two'))
    expect(await answerOf(proxy.url)).toBe('200 two')
  })

  it.each([
    ['of another Gateway', () => serviceAccountToken('system:serviceaccount:infra:other'), '403'],
    ['of another namespace', () => serviceAccountToken('system:serviceaccount:else:edge'), '403'],
    [
      'of another audience',
      () => serviceAccountToken('system:serviceaccount:infra:edge', { audience: 'else' }),
      '401',
    ],
    ['that is none', () => 'wrong', '401'],
  ])('receives nothing with a token %s', async (_, token, status) => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller, { token: token() })
    await controller.publish(configOf(proxy, 'one'))
    await until('the refusal is logged', () => proxy.stdout().includes(`responded with ${status}`))
    expect(controller.proxies()).toEqual([])
    expect(await proxy.isReady()).toBe(false)
  })

  it('reads a new token from its file', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller, { token: 'wrong' })
    await until('the refusal is logged', () => proxy.stdout().includes('responded with 401'))
    proxy.setToken(serviceAccountToken('system:serviceaccount:infra:edge'))
    await controller.serve(configOf(proxy, 'one'))
  })
})

describe('the copy of the configuration', () => {
  it('serves after a restart without controller, and is replaced by the stream', async () => {
    const controller = await startStreamController()
    const first = await servingProxy(controller)
    await copyIsWritten(first)
    await controller.close()
    await first.stop()
    const proxy = await startProxy(controller, { again: first })
    await proxy.ready()
    expect(await answerOf(proxy.url)).toBe('200 one')
    expect(await proxy.status()).toMatchObject({ connected: false, source: 'copy' })
    expect((await proxy.status()).ageSeconds).toBeGreaterThanOrEqual(0)
    const message = 'configuration copy used: no configuration from the controller'
    await until('the use of the copy is logged', () => logged(proxy, message))
    const again = await startStreamController({ again: controller })
    await again.serve(configOf(proxy, 'two'))
    expect(await answerOf(proxy.url)).toBe('200 two')
  })

  it('is confirmed by a controller with the same configuration', async () => {
    const controller = await startStreamController()
    const first = await servingProxy(controller)
    await copyIsWritten(first)
    await first.stop()
    const proxy = await startProxy(controller, { again: first })
    await proxy.ready()
    expect(await proxy.status()).toMatchObject({ connected: true, source: 'controller' })
    expect(await answerOf(proxy.url)).toBe('200 one')
  })

  it.each([
    ['is damaged', { damage: true }, {}],
    ['has another key', {}, { SESSION_KEY: 'd1'.repeat(32) }],
    ['belongs to another Gateway', {}, { GATEWAY: 'infra/other' }],
  ])('is ignored if it %s', async (_, { damage = false }: { damage?: boolean }, env) => {
    const controller = await startStreamController()
    const first = await servingProxy(controller)
    await copyIsWritten(first)
    await controller.close()
    await first.stop()
    if (damage) {
      const path = join(first.folder, copyName)
      const bytes = readFileSync(path)
      writeFileSync(path, bytes.subarray(0, bytes.length - 7))
    }
    const proxy = await startProxy(controller, { again: first, env })
    await until('the copy is ignored', () => logged(proxy, 'configuration copy ignored'))
    expect(await proxy.isReady()).toBe(false)
  })

  it('contains no secret, nor do log, metrics and status', async () => {
    const canary = 'key-canary-58122'
    const controller = await startStreamController()
    const proxy = await startProxy(controller)
    const config = configOf(proxy, 'one')
    await controller.serve({
      ...config,
      routes: [
        ...(config.routes ?? []),
        {
          name: 'HTTPRoute/infra/llm/0',
          matches: [{ path: { pathPrefix: '/llm' } }],
          backends: [{ ai: { provider: { openAI: {} } }, policies: { backendAuth: { key: canary } } }],
        },
      ],
    })
    await proxy.ready()
    await copyIsWritten(proxy)
    const broken = {
      ...config,
      routes: [
        { gateways: 'missing', backends: [{ host: 'a:1', policies: { backendAuth: { key: canary } } }] },
      ],
    }
    await controller.publish(broken)
    await until('the refusal arrives', () => controller.proxies()[0]?.refused !== undefined)
    const texts = [
      proxy.stdout(),
      proxy.stderr(),
      await proxy.metrics(),
      JSON.stringify(await proxy.status()),
      JSON.stringify(controller.proxies()),
      readFileSync(join(proxy.folder, copyName), 'latin1'),
    ]
    for (const text of texts) {
      expect(text).not.toContain(canary)
      expect(text).not.toContain(proxySessionKey)
    }
  })
})

describe('shutdown of a proxy', () => {
  it('accepts connections during the drain delay, while readiness fails', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller, { env: { DRAIN_DELAY: '2s' } })
    await controller.serve(configOf(proxy, 'one'))
    await proxy.ready()
    proxy.child.kill('SIGTERM')
    await until('readiness fails', async () => !(await proxy.isReady()))
    const response = await fetch(proxy.url)
    expect(`${response.status} ${await response.text()}`).toBe('200 one')
    // A kept connection would be closed at the end of the delay, with a request possibly on its way.
    expect(response.headers.get('connection')).toBe('close')
    expect((await proxy.exited).code).toBe(0)
  })

  it('aborts requests at the drain deadline', async () => {
    const controller = await startStreamController()
    const upstream = await startMockServer(() => undefined)
    const proxy = await startProxy(controller, { env: { DRAIN_DEADLINE: '100ms' } })
    await controller.serve(serviceConfig(proxy, `127.0.0.1:${upstream.port}`))
    await proxy.ready()
    const pending = fetch(proxy.url).catch(() => undefined)
    await until('the request arrives', () => upstream.seen.length === 1)
    const stoppedAt = performance.now()
    proxy.child.kill('SIGTERM')
    expect((await proxy.exited).code).toBe(0)
    // The default deadline is 25 s.
    expect(performance.now() - stoppedAt).toBeLessThan(20_000)
    await pending
  })
})

describe('a proxy that waits for its configuration', () => {
  it('ends at a stop signal', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller)
    await until('the proxy connects', () => controller.proxies().length === 1)
    proxy.child.kill('SIGTERM')
    expect(await proxy.exited).toEqual({ code: 0, signal: null })
  })

  it('reports a port in use, and serves once it is free', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller)
    const owner = createServer()
    await new Promise<void>((resolve) => owner.listen(proxy.port, '127.0.0.1', resolve))
    await controller.publish(configOf(proxy, 'one'))
    await until('the error arrives', () => controller.proxies()[0]?.refused !== undefined)
    expect(controller.proxies()[0]?.refused?.errors.join()).toContain('the port is in use')
    await new Promise((resolve) => owner.close(resolve))
    await controller.serve(configOf(proxy, 'two'))
    expect(await answerOf(proxy.url)).toBe('200 two')
  })
})

describe('the environment of a proxy', () => {
  it('is reported by variable', async () => {
    const controller = await startStreamController()
    const proxy = await startProxy(controller, {
      env: { GATEWAY: 'edge', DRAIN_DELAY: 'soon', DRAIN_DEADLINE: '1' },
    })
    expect((await proxy.exited).code).toBe(1)
    expect(proxy.stderr()).toContain('GATEWAY must be <namespace>/<name>')
    expect(proxy.stderr()).toContain('DRAIN_DELAY must be a duration')
    expect(proxy.stderr()).toContain('DRAIN_DEADLINE must be a duration')
  })
})
