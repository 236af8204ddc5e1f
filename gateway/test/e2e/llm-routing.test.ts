import { beforeEach, describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { chat, llmConfig, openAiModel } from '../support/llm-config.ts'
import { metricValue } from '../support/metrics.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors } from '../support/mock-openai.ts'
import { jsonAnswer, member } from '../support/mock-server.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

let first: MockOpenAi
let second: MockOpenAi

beforeEach(async () => {
  first = await mockOpenAi()
  second = await mockOpenAi()
  first.behaviour.content = 'from the first'
  second.behaviour.content = 'from the second'
})

const failover = (...models: string[]) => ({
  failover: { targets: models.map((model, priority) => ({ model, priority })) },
})

describe('failover', () => {
  it('replaces streams without content, and remembers failures over data planes', async () => {
    const health = { unhealthyExpression: 'response.code == 401', eviction: { duration: '60s' } }
    const models = [
      openAiModel('one', first.url),
      openAiModel('checked', first.url, { health }),
      openAiModel('two', second.url),
    ]
    const virtualModels = [
      { name: 'sure', routing: failover('one', 'two') },
      { name: 'checked-first', routing: failover('checked', 'two') },
    ]
    const gateway = await startGateway({
      ...llmConfig({}, { models, virtualModels }),
      config: { workerThreads: 2 },
    })
    // The stream has its role event, and is then cut.
    first.behaviour.cutAfter = 1
    const streamed = await chat(gateway, { model: 'sure', stream: true })
    const text = await streamed.text()
    expect([streamed.status, text.includes('"error"')]).toEqual([200, false])
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1)
    expect(text).toContain('[DONE]')
    const [line] = await gateway.logged(1)
    expect(line).toMatchObject({ servedBy: 'two', attempts: 2, totalTokens: 30 })

    first.behaviour.cutAfter = undefined
    first.next(jsonAnswer(401, { error: { message: 'expired' } }))
    expect((await chat(gateway, { model: 'checked-first' })).status).toBe(200)
    const asked = first.seen.length
    // Each request has its own connection, which the kernel assigns to a data plane.
    for (let request = 0; request < 12; request += 1) {
      const { status } = await chat(gateway, { model: 'checked-first' }, { headers: { connection: 'close' } })
      expect(status).toBe(200)
    }
    expect(first.seen.length).toBe(asked)
    const metrics = await gateway.metrics()
    for (const destination of ['llm/one', 'llm/checked'])
      expect(metricValue(metrics, 'tollgate_destination_ejections_total', { destination })).toBe(1)
  })
})

describe('the choice among targets', () => {
  it('follows sessions, labels, prices and the length of prompts', async () => {
    const models = [
      openAiModel('one', first.url, { labels: { region: 'eu' } }),
      openAiModel('two', second.url, { labels: { region: 'us' } }),
    ]
    const equals = ['one', 'two'].map((model) => ({ model, priority: 0 }))
    const sessionAffinity = { source: 'request.headers["x-session"]' }
    const requiredLabels = { region: 'request.headers["x-region"]' }
    const virtualModels = [
      { name: 'sticky', routing: { failover: { targets: equals, sessionAffinity } } },
      { name: 'pinned', routing: { failover: { targets: equals, requiredLabels } } },
      { name: 'cheap', routing: { failover: { targets: equals, prefer: 'cost' } } },
      { name: 'fast', routing: { failover: { targets: equals, prefer: 'latency' } } },
      {
        name: 'long',
        routing: {
          failover: { targets: failover('one', 'two').failover.targets, contextFallback: true },
        },
      },
    ]
    const rates = (input: string) => ({ rates: { input, output: '1' } })
    const limits = { contextWindow: 50 }
    const inline = { providers: { openai: { models: { one: { ...rates('2'), limits }, two: rates('1') } } } }
    const gateway = await startGateway({
      ...llmConfig({}, { models, virtualModels }),
      config: { modelCatalog: [{ inline }] },
    })
    async function served(model: string, headers: Record<string, string> = {}, more: object = {}) {
      const response = await chat(gateway, { model, ...more }, { headers })
      return member(await response.json(), 'choices', 0, 'message', 'content') ?? response.status
    }
    const sessions = []
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
      sessions.push([
        await served('sticky', { 'x-session': id }),
        await served('sticky', { 'x-session': id }),
      ])
    for (const [once, again] of sessions) expect(again).toBe(once)
    expect(new Set(sessions.flat()).size).toBe(2)

    expect(await served('pinned', { 'x-region': 'eu' })).toBe('from the first')
    expect(await served('pinned', { 'x-region': 'us' })).toBe('from the second')
    expect(await served('pinned')).toBe(400)
    expect(await served('cheap')).toBe('from the second')

    expect(await served('long')).toBe('from the first')
    const content = 'word '.repeat(100)
    expect(await served('long', {}, { messages: [{ role: 'user', content }] })).toBe('from the second')
    first.next(openAiErrors.contextLength)
    expect(await served('long')).toBe('from the second')

    for (let request = 0; request < 4; request += 1) expect(await served('fast')).toMatch(/^from/)
  })
})

describe('slow and occupied targets', () => {
  it('are overtaken by a second target, and refuse calls beyond their queue', async () => {
    const models = [
      openAiModel('one', first.url),
      openAiModel('two', second.url),
      openAiModel('single', second.url, { concurrency: { max: 1, queue: 1, timeout: '30s' } }),
    ]
    const hedged = { failover: { ...failover('one', 'two').failover, hedge: { delay: '50ms' } } }
    const gateway = await startGateway({
      ...llmConfig({}, { models, virtualModels: [{ name: 'quick', routing: hedged }] }),
      config: { workerThreads: 2 },
    })
    // Only the role arrives in time.
    first.behaviour.pauseMs = 60_000
    const { text } = await readStream(await chat(gateway, { model: 'quick', stream: true }))
    expect(text.match(/"role":"assistant"/g)).toHaveLength(1)
    expect(text).toContain('[DONE]')
    await until('the end of the slow request', () => first.seen[0]?.aborted)
    const [line] = await gateway.logged(1)
    expect(line).toMatchObject({ servedBy: 'two', attempts: 2, outputTokens: 9, tokensEstimated: true })

    const held = Promise.withResolvers<() => void>()
    second.next((request, response) => held.resolve(() => openAiErrors.failed(request, response)))
    const running = chat(gateway, { model: 'single' })
    const end = await held.promise
    const others = [1, 2].map(() => chat(gateway, { model: 'single' }, { headers: { connection: 'close' } }))
    const refused = await Promise.race(others)
    expect([refused.status, member(await refused.json(), 'error', 'code')]).toEqual([503, 'model_busy'])
    end()
    expect((await running).status).toBe(500)
    const statuses = await Promise.all(others.map(async (other) => (await other).status))
    expect(statuses.toSorted()).toEqual([200, 503])
    const metrics = await gateway.metrics()
    expect(metricValue(metrics, 'tollgate_llm_hedges_total', { model: 'two', outcome: 'won' })).toBe(1)
    for (const outcome of ['served', 'refused'])
      expect(metricValue(metrics, 'tollgate_llm_queued_total', { model: 'single', outcome })).toBe(1)
  })
})
