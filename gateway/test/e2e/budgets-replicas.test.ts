import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { until } from '../support/wait.ts'

/** Tokens of an answer of the mock. */
const tokensPerCall = 30
const clientsPerGateway = 4

function replica(openai: MockOpenAi, url: string, budget: object): GatewayConfig {
  const budgets = [{ name: 'team', window: '366d', ...budget }]
  return { ...llmConfig({ openai }, { policies: { budgets } }), config: { logging: { database: { url } } } }
}

/** Sends requests on several connections until `isOpen` is false or the gateway ends. */
function startClients(gateway: Gateway, isOpen: () => boolean) {
  const counts = { admitted: 0, refused: 0, unavailable: 0, lastSecond: 0 }
  const starts: number[] = []
  const run = async () => {
    while (isOpen()) {
      try {
        const response = await chat(gateway, { model: 'gpt-test', max_tokens: 10 })
        await response.arrayBuffer()
        if (response.status === 200) {
          counts.admitted += 1
          starts.push(performance.now())
        } else if (response.status === 429) counts.refused += 1
        else counts.unavailable += 1
        if (response.status !== 200) await delay(20)
      } catch {
        return
      }
    }
  }
  const running = Promise.all(Array.from({ length: clientsPerGateway }, run))
  return {
    counts,
    /** Highest number of admitted requests in a second. */
    peakPerSecond() {
      let most = 0
      for (let first = 0, last = 0; last < starts.length; last += 1) {
        while ((starts[last] ?? 0) - (starts[first] ?? 0) > 1_000) first += 1
        most = Math.max(most, last - first + 1)
      }
      return most
    },
    running,
  }
}

async function usedTokens(gateway: Gateway): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/budgets`)
  const { budgets } = (await response.json()) as { budgets: { usage: { used: string } }[] }
  return Number(budgets[0]?.usage.used)
}

describe.skipIf(postgresMissing !== undefined)('budgets of three gateways on one Postgres', () => {
  let postgres: TestPostgres
  beforeAll(async () => {
    postgres = await startPostgres()
  }, 120_000)

  it('exceed their limit by no more than requests in flight and a second of traffic', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.pauseMs = 5
    const config = replica(openai, await postgres.createDatabase(), {
      limit: { tokens: 600 * tokensPerCall },
    })
    const gateways = [
      await startGateway(config, { mayCrash: true }),
      await startGateway(config, { mayCrash: true }),
      await startGateway(config, { mayCrash: true }),
    ]
    let isOpen = true
    const clients = gateways.map((gateway) => startClients(gateway, () => isOpen))
    const [first, second] = gateways
    if (first === undefined || second === undefined) throw new Error('gateways expected')
    await until('a part is used', async () => openai.seen.length > 200)
    first.child.kill('SIGKILL')
    await first.exited
    const again = await startGateway(config, { again: first, mayCrash: true })
    const ofAgain = startClients(again, () => isOpen)
    await until(
      'all gateways refuse',
      () => [...clients.slice(1), ofAgain].every(({ counts }) => counts.refused > 20),
      60_000,
    )
    isOpen = false
    await Promise.all([...clients, ofAgain].map(({ running }) => running))
    const all = [...clients, ofAgain]
    const perSecond = all.reduce((sum, client) => sum + client.peakPerSecond(), 0)
    const inFlight = all.length * clientsPerGateway
    // Requests of the killed gateway whose charge was lost, and those of the others until they learn of it.
    expect(openai.seen.length).toBeGreaterThanOrEqual(600)
    expect(openai.seen.length).toBeLessThanOrEqual(600 + inFlight + perSecond)
    const live = [...gateways.slice(1), again]
    const totals = await until('the replicas agree', async () => {
      const used = await Promise.all(live.map(usedTokens))
      return used.every((amount) => amount === used[0]) && used
    })
    // A killed gateway loses at most the last second.
    expect(totals[0]).toBeLessThanOrEqual(openai.seen.length * tokensPerCall)
    expect(totals[0]).toBeGreaterThanOrEqual(600 * tokensPerCall)
    for (const gateway of live) await gateway.stop()
  })

  it('count locally during an outage of the database, and together after it', async () => {
    const openai = await mockOpenAi()
    const proxy = await startPostgresProxy(postgres.port)
    const url = proxy.through(await postgres.createDatabase())
    const config = replica(openai, url, { limit: { tokens: 40 * tokensPerCall } })
    const gateways = await Promise.all([startGateway(config), startGateway(config)])
    const askAll = async (gateway: Gateway, count: number) => {
      let admitted = 0
      for (let index = 0; index < count; index += 1) {
        const response = await chat(gateway, { model: 'gpt-test', max_tokens: 10 })
        await response.arrayBuffer()
        if (response.status === 200) admitted += 1
      }
      return admitted
    }
    const [one, other] = gateways
    expect(await askAll(one, 10)).toBe(10)
    await until('the other gateway counts them', async () => (await usedTokens(other)) === 10 * tokensPerCall)
    proxy.hangs = true
    proxy.cut()
    expect(await askAll(one, 10)).toBe(10)
    expect(await askAll(other, 10)).toBe(10)
    expect(await Promise.all(gateways.map(usedTokens))).toEqual([20 * tokensPerCall, 20 * tokensPerCall])
    proxy.hangs = false
    proxy.cut()
    await until(
      'both count all requests',
      async () => (await Promise.all(gateways.map(usedTokens))).every((used) => used === 30 * tokensPerCall),
      60_000,
    )
    expect(await askAll(one, 20)).toBe(10)
    await until('the other gateway refuses', async () => (await askAll(other, 1)) === 0)
  })

  it('agree after an outage in which a gateway is killed', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.pauseMs = 5
    const server = await startPostgres()
    const limit = 900
    const config = replica(openai, await server.createDatabase(), {
      limit: { tokens: limit * tokensPerCall },
    })
    const gateways = [
      await startGateway(config, { mayCrash: true }),
      await startGateway(config, { mayCrash: true }),
      await startGateway(config, { mayCrash: true }),
    ]
    const clients = gateways.map((gateway) => startClients(gateway, () => true))
    const [first, ...others] = gateways
    if (first === undefined) throw new Error('a gateway expected')
    await until('a part is used', () => openai.seen.length > 200)
    await server.stop()
    const beforeOutage = openai.seen.length
    await delay(1_500)
    first.child.kill('SIGKILL')
    await first.exited
    await server.start()
    const again = await startGateway(config, { again: first, mayCrash: true })
    const all = [...clients, startClients(again, () => true)]
    const live = [...others, again]
    await until('all gateways refuse', () => all.slice(1).every(({ counts }) => counts.refused > 20), 60_000)
    const admitted = openai.seen.length
    const totals = await until(
      'the replicas agree',
      async () => {
        const used = await Promise.all(live.map(usedTokens))
        return used.every((amount) => amount === used[0]) && used
      },
      60_000,
    )
    expect(totals[0]).toBeGreaterThanOrEqual(limit * tokensPerCall)
    // The killed gateway has lost at most its last second.
    expect(totals[0]).toBeLessThanOrEqual(admitted * tokensPerCall)
    expect(beforeOutage).toBeLessThan(limit)
    await Promise.all(live.map((gateway) => gateway.stop()))
    await Promise.all(all.map(({ running }) => running))
  })

  it('refuse without totals if they fail closed', async () => {
    const openai = await mockOpenAi()
    const proxy = await startPostgresProxy(postgres.port)
    const url = proxy.through(await postgres.createDatabase())
    const config = replica(openai, url, { limit: { tokens: 1_000_000 }, failureMode: 'failClosed' })
    const gateway = await startGateway(config)
    const status = async () => {
      const response = await chat(gateway, { model: 'gpt-test' })
      await response.arrayBuffer()
      return response.status
    }
    expect(await status()).toBe(200)
    proxy.hangs = true
    proxy.cut()
    await until('requests are refused', async () => (await status()) === 503)
    proxy.hangs = false
    proxy.cut()
    await until('requests are admitted', async () => (await status()) === 200, 60_000)
  })
})
