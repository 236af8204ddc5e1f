import { Agent } from 'node:http'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type Answered, call } from '../support/http-call.ts'
import { aliceKey, aliceRecord, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { until } from '../support/wait.ts'

// Connections are spread over four data planes; their limits are those of one process.

const bobKey = 'tg-canary-bob-55e2'
const connections = 100

function limited(localRateLimit: object[], openai?: { url: string }) {
  const keys = [aliceRecord, { key: bobKey, metadata: { id: 'key-bob' } }]
  const config = llmConfig(openai ? { openai } : {}, { policies: { apiKey: { keys }, localRateLimit } })
  return { ...config, config: { workerThreads: 4 } }
}

type Burst = { key?: string; model?: string; count: number }

/** Sends requests over many connections at once. */
async function burst(
  gateway: Gateway,
  { key = aliceKey, model = 'echo', count }: Burst,
): Promise<Answered[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  endAfter('test', () => agent.destroy())
  return Promise.all(
    Array.from({ length: count }, () =>
      call(gateway.port, '/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
        agent,
      }),
    ),
  )
}

function admitted(answers: readonly Answered[]): number {
  const statuses = new Set(answers.map(({ status }) => status))
  expect([200, 429]).toEqual(expect.arrayContaining([...statuses]))
  return answers.filter(({ status }) => status === 200).length
}

type Reading = { state: { remaining?: number; values?: number; exhausted?: number; fullest?: object[] } }

async function readLimits({ adminPort }: Gateway): Promise<Reading[]> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/limits`)
  const { local } = (await response.json()) as { local: Reading[] }
  return local
}

describe('local limits of four data planes', () => {
  it('pass exactly 50 of 500 parallel requests', async () => {
    const gateway = await startGateway(limited([{ requests: 50, unit: 'Hours' }]))
    const answers = await burst(gateway, { count: 500 })
    expect(admitted(answers)).toBe(50)
    const remaining = answers
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(headers['x-ratelimit-remaining']))
    // Each number once: no two requests have consumed the same unit.
    expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, index) => index))
    expect((await readLimits(gateway))[0]?.state).toMatchObject({ remaining: 0 })
  })

  it('count each key value exactly, and all of them together', async () => {
    const gateway = await startGateway(
      limited([
        { requests: 1000, unit: 'Hours', name: 'all' },
        { requests: 20, unit: 'Hours', key: 'apiKey.id', name: 'each' },
      ]),
    )
    const [alice, bob] = await Promise.all([
      burst(gateway, { count: 150 }),
      burst(gateway, { key: bobKey, count: 150 }),
    ])
    expect([admitted(alice), admitted(bob)]).toEqual([20, 20])
    const [all, each] = await readLimits(gateway)
    // Refused requests consume no unit of either limit.
    expect(all?.state).toMatchObject({ remaining: 960 })
    expect(each?.state).toMatchObject({ values: 2, exhausted: 2 })
    expect(each?.state.fullest).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ value: 'key-alice', remaining: 0 }),
        expect.objectContaining({ value: 'key-bob', remaining: 0 }),
      ]),
    )
  })

  it('charge all tokens, and refuse everywhere once they are used up', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited([{ tokens: 3000, unit: 'Hours' }], openai))
    const request = { model: 'gpt-test' }
    // 30 tokens each.
    expect(admitted(await burst(gateway, { ...request, count: 80 }))).toBe(80)
    await until('all tokens are charged', async () => {
      const [reading] = await readLimits(gateway)
      return reading?.state.remaining === 600
    })
    expect(admitted(await burst(gateway, { ...request, count: 20 }))).toBe(20)
    await until('no tokens remain', async () => (await readLimits(gateway))[0]?.state.remaining === 0)
    expect(admitted(await burst(gateway, { ...request, count: 200 }))).toBe(0)
    expect(openai.seen).toHaveLength(100)
  })

  it('retain the count while reloads change the limit during a burst', async () => {
    const entry = (requests: number) => [{ requests, unit: 'Hours', name: 'changing' }]
    const gateway = await startGateway(limited(entry(100)))
    const bursts = [burst(gateway, { count: 300 })]
    await gateway.reload(limited(entry(120)))
    bursts.push(burst(gateway, { count: 300 }))
    await gateway.reload(limited(entry(150)))
    bursts.push(burst(gateway, { count: 300 }))
    expect(admitted((await Promise.all(bursts)).flat())).toBe(150)
    expect(admitted(await burst(gateway, { count: 100 }))).toBe(0)
  })
})
