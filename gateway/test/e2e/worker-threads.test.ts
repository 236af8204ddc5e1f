import { Agent } from 'node:http'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { freePorts } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { keyedEcho, resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'
import { until, within } from '../support/wait.ts'

const planes = 4
/** Traffic during changes: each connection sends again and again, without occupying the processors. */
const trafficPauseMs = 20
/** So many that each of four data planes has one: the chance of an idle one is below 10^-7. */
const connectionCount = 64

function withPlanes(config: GatewayConfig, workerThreads: number | 'auto' = planes): GatewayConfig {
  return { ...config, config: { ...config.config, workerThreads } }
}

/** A gateway with one route of a fixed response. */
function answering(port: number, text: string): GatewayConfig {
  return {
    gateways: { default: { port } },
    routes: [
      {
        name: 'fixed',
        policies: {
          directResponse: { status: 200, body: text },
          responseHeaderModifier: { set: { 'x-text': text } },
        },
      },
    ],
  }
}

/** Kept connections, each to one data plane. */
function connections(count = connectionCount): Agent[] {
  const agents = Array.from({ length: count }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  endAfter('test', () => {
    for (const agent of agents) agent.destroy()
  })
  return agents
}

async function metric(gateway: Gateway, name: string): Promise<number> {
  const line = (await gateway.metrics()).split('\n').find((text) => text.startsWith(name))
  return Number(line?.split(' ').at(-1))
}

/** Texts of the fixed response on new connections. */
function textsOf(port: number): Promise<string[]> {
  return Promise.all(connections(16).map(async (agent) => (await call(port, '/', { agent })).text))
}

/** Status of a completion on a connection. */
async function statusOn({ port }: Gateway, agent: Agent, key: string): Promise<number> {
  const answered = await call(port, '/v1/chat/completions', {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'from-file', messages: [{ role: 'user', content: 'hello' }] }),
  })
  return answered.status
}

describe('a gateway with four data planes', () => {
  it('applies a created and a deleted key on every connection before it responds', async () => {
    const gateway = await startGateway(withPlanes(stored(keyedEcho, sqliteUrl())))
    const api = resourceApi(gateway)
    for (let round = 0; round < 5; round++) {
      const key = `sk-round-${round}-0123456789abcdef`
      const { id } = await api.create('llm.apiKey', { key })
      const created = await Promise.all(connections(16).map((agent) => statusOn(gateway, agent, key)))
      expect(new Set(created)).toEqual(new Set([200]))
      await api.remove('llm.apiKey', id)
      const removed = await Promise.all(connections(16).map((agent) => statusOn(gateway, agent, key)))
      expect(new Set(removed)).toEqual(new Set([401]))
    }
  })

  it('applies two values of a configuration together', async () => {
    const [port = 0] = await freePorts(1)
    const gateway = await startGateway(withPlanes(answering(port, 'text-0')))
    const agents = connections(16)
    const mixed: string[] = []
    let going = true
    const traffic = agents.map(async (agent) => {
      while (going) {
        const { status, text, headers } = await call(port, '/', { agent })
        if (status !== 200 || headers['x-text'] !== text) mixed.push(`${status} ${text} ${headers['x-text']}`)
        await delay(trafficPauseMs)
      }
    })
    for (let version = 1; version <= 10; version++) {
      await gateway.reload(withPlanes(answering(port, `text-${version}`)))
      const texts = await textsOf(port)
      expect(new Set(texts)).toEqual(new Set([`text-${version}`]))
    }
    going = false
    await Promise.all(traffic)
    expect(mixed).toEqual([])
  })

  it('counts and logs every request once, in whole lines', async () => {
    const [port = 0] = await freePorts(1)
    const gateway = await startGateway(withPlanes(answering(port, 'x')))
    const requests = 50
    await Promise.all(
      connections().map(async (agent) => {
        for (let request = 0; request < requests; request++)
          await call(port, `/${'p'.repeat(request)}`, { agent })
      }),
    )
    const total = connectionCount * requests
    const lines = await gateway.logged(total)
    expect(lines).toHaveLength(total)
    expect(await metric(gateway, 'tollgate_requests_total{route="fixed",status="200"}')).toBe(total)
    expect(await metric(gateway, 'tollgate_worker_threads')).toBe(planes)
  })

  it.each([
    ['warn', 1],
    ['error', 0],
  ])('logs a warning about the configuration once, from level %s on', async (level, expected) => {
    const [port = 0] = await freePorts(1)
    const policies = {
      directResponse: { status: 200, body: 'x' },
      cors: { allowCredentials: true, allowOrigins: ['*'] },
    }
    const gateway = await startGateway(
      withPlanes({
        ...answering(port, 'x'),
        config: { logging: { level } },
        routes: [{ name: 'fixed', policies }],
      }),
    )
    expect((await call(port, '/')).status).toBe(200)
    await gateway.stop()
    expect(gateway.stdout().split('cors permits credentials').length - 1).toBe(expected)
  })

  it('refuses a configuration that a data plane cannot prepare, for all of them', async () => {
    const [port = 0, other = 0] = await freePorts(2)
    const gateway = await startGateway(withPlanes(answering(port, 'before')))
    const occupant = createServer().listen(other, '127.0.0.1')
    endAfter('test', () => void occupant.close())
    const next = answering(port, 'after')
    gateway.write(withPlanes({ ...next, gateways: { ...next.gateways, second: { port: other } } }))
    const status = await until('the configuration is refused', async () => {
      const current = await gateway.status()
      return current.lastError !== undefined && current
    })
    expect(status.lastError).toContain(`cannot listen on 127.0.0.1:${other}: the port is in use`)
    const texts = await textsOf(port)
    expect(new Set(texts)).toEqual(new Set(['before']))
  })

  it('serves the config resource API on a gateway', async () => {
    const [port = 0] = await freePorts(1)
    const gateway = await startGateway(
      withPlanes({
        ...answering(port, 'x'),
        ui: { gateways: 'default', policies: { apiKey: { keys: [{ key: 'ui-key-0123456789' }] } } },
      }),
    )
    const headers = { authorization: 'Bearer ui-key-0123456789' }
    const answers = await Promise.all(
      connections(16).map((agent) => call(port, '/api/config/status', { agent, headers })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const tooLarge = await call(port, '/api/config/resources/llm.apiKey', {
      method: 'PUT',
      headers: { ...headers, 'content-type': 'application/json' },
      body: ' '.repeat(3 * 1024 * 1024),
    })
    expect(tooLarge.status).toBe(413)
    expect((await gateway.status()).revision).toBe(1)
  })

  it('finishes requests of all data planes at shutdown', async () => {
    const [port = 0] = await freePorts(1)
    const gateway = await startGateway(withPlanes(answering(port, 'x')))
    const outcomes = connections().map(async (agent) => (await call(port, '/', { agent })).status)
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set([200]))
    const { code } = await gateway.stop()
    expect(code).toBe(0)
    expect(gateway.requests()).toHaveLength(connectionCount)
  })

  it('ends at start if its port is in use by a gateway with as many data planes', async () => {
    const [port = 0] = await freePorts(1)
    await startGateway(withPlanes(answering(port, 'x')))
    const second = await startGateway(withPlanes(answering(port, 'y')), { mayCrash: true }).catch(
      (error: Error) => error,
    )
    expect(String(second)).toContain(`cannot listen on 127.0.0.1:${port}: the port is in use`)
  })
})

describe('a data plane that ends', () => {
  const preload = new URL('../support/end-data-plane.mjs', import.meta.url).href
  // The runtime ends a thread at its limit with 16 MB to spare. A large young generation, promoted at once,
  // would exceed these, which ends the process.
  const smallHeap = ' --max-old-space-size=96 --max-semi-space-size=1'
  const env = (end: string) => ({
    NODE_OPTIONS: `--import ${preload}${end === 'memory' ? smallHeap : ''}`,
    TOLLGATE_TEST_PLANE: '1',
    TOLLGATE_TEST_END: end,
  })

  it.each(['throw', 'memory'])('by %s breaks its own connections only, and is replaced', async (end) => {
    const [port = 0] = await freePorts(1)
    const gateway = await startGateway(withPlanes(answering(port, 'before')), { env: env(end) })
    await gateway.reload(withPlanes(answering(port, 'in force')))
    const agents = connections()
    const failures = new Map<Agent, number>()
    let going = true
    const traffic = agents.map(async (agent) => {
      while (going) {
        const answered = await call(port, '/', { agent }).catch(() => undefined)
        if (answered === undefined) failures.set(agent, (failures.get(agent) ?? 0) + 1)
        else expect(answered).toMatchObject({ status: 200, text: 'in force' })
        await delay(trafficPauseMs)
      }
    })
    gateway.child.kill('SIGUSR2')
    await until('the data plane is replaced', () => gateway.stdout().includes('"msg":"data plane replaced"'))
    await Promise.all(connections(16).map((agent) => call(port, '/', { agent })))
    going = false
    await Promise.all(traffic)
    // A connection fails once, with the request that was in flight on it.
    expect(Math.max(0, ...failures.values())).toBeLessThanOrEqual(1)
    expect(failures.size).toBeLessThan(connectionCount / 2)
    expect(await metric(gateway, 'tollgate_worker_failures_total')).toBe(1)
    expect(gateway.stdout()).toContain('"msg":"data plane ended, its connections are closed"')
  })

  it('five times within a minute ends the process with a message', async () => {
    const [port = 0] = await freePorts(1)
    const gateway = await startGateway(withPlanes(answering(port, 'x')), {
      env: env('throw'),
      mayCrash: true,
    })
    for (let end = 1; end <= 5; end++) {
      gateway.child.kill('SIGUSR2')
      if (end === 5) break
      await until(
        `the data plane is replaced ${end} times`,
        () => gateway.stdout().split('"msg":"data plane replaced"').length > end,
      )
    }
    const { code } = await within('the process ends', gateway.exited)
    expect(code).toBe(1)
    expect(gateway.stderr()).toContain('data planes ended 5 times within a minute: data plane 1 ended')
  })
})

describe('config.workerThreads', () => {
  it.each([[0], [257], [1.5], ['many']])('cannot be %j', async (workerThreads) => {
    const gateway = await startGateway(
      { config: { workerThreads }, llm: { models: [] } },
      { mayCrash: true },
    ).catch((error: Error) => error)
    expect(String(gateway)).toContain('config.workerThreads')
  })

  it('refuses an invalid WORKER_THREADS', async () => {
    const gateway = await startGateway(
      { llm: { models: [] } },
      { mayCrash: true, env: { WORKER_THREADS: '0' } },
    ).catch((error: Error) => error)
    expect(String(gateway)).toContain('WORKER_THREADS must be auto or a whole number from 1 to 256')
  })
})
