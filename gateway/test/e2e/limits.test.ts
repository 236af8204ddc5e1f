import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { aliceRecord, chat, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

const bobKey = 'tg-canary-bob-91d0'

function limited(localRateLimit: object[], openai?: { url: string }) {
  const keys = [aliceRecord, { key: bobKey, metadata: { id: 'key-bob', group: 'research' } }]
  return llmConfig(openai ? { openai } : {}, { policies: { apiKey: { keys }, localRateLimit } })
}

function rateHeaders(response: Response): (number | undefined)[] {
  return ['limit', 'remaining', 'reset'].map((name) => {
    const value = response.headers.get(`x-ratelimit-${name}`)
    return value === null ? undefined : Number(value)
  })
}

describe('request limits', () => {
  it('admit base and burst, then answer 429 in plain text with the time to wait', async () => {
    const gateway = await startGateway(limited([{ requests: 2, unit: 'Hours', burst: 1 }]))
    for (const left of [2, 1, 0]) {
      const admitted = await chat(gateway)
      expect(admitted.status).toBe(200)
      const [limit, remaining, reset] = rateHeaders(admitted)
      expect([limit, remaining]).toEqual([3, left])
      expect(reset).toBeGreaterThan(0)
    }
    const refused = await chat(gateway)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(await refused.text()).toBe('rate limit exceeded')
    const [limit, remaining, reset] = rateHeaders(refused)
    expect([limit, remaining]).toEqual([3, 0])
    expect(Number(refused.headers.get('retry-after'))).toBe(reset)
    expect(reset).toBeLessThanOrEqual(3600)
  })

  it('refuse with the same text in every client API', async () => {
    const gateway = await startGateway(limited([{ requests: 1, unit: 'Hours' }]))
    await chat(gateway)
    for (const path of ['/v1/messages', '/v1/responses', '/v1/embeddings']) {
      const refused = await chat(gateway, {}, { path })
      expect([path, refused.status, await refused.text()]).toEqual([path, 429, 'rate limit exceeded'])
      expect(refused.headers.get('content-type')).toMatch(/^text\/plain/)
    }
  })

  it('admit a client again after the reported waiting time', async () => {
    const gateway = await startGateway(limited([{ requests: 1, unit: 'Seconds' }]))
    // The second request, or a later one where requests take long.
    const refused = await until('a request is refused', async () => {
      const answer = await chat(gateway)
      return answer.status === 429 && answer
    })
    const seconds = Number(refused.headers.get('retry-after'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    expect((await chat(gateway)).status).toBe(200)
  })

  it('take nothing from any entry when one refuses', async () => {
    const gateway = await startGateway(
      limited([
        { requests: 5, unit: 'Hours' },
        { requests: 2, unit: 'Hours', key: 'apiKey.id' },
      ]),
    )
    const statuses = async (key: string | undefined, count: number) => {
      const result: number[] = []
      for (let index = 0; index < count; index++) {
        const headers = key ? { authorization: `Bearer ${key}` } : {}
        result.push((await chat(gateway, {}, { headers })).status)
      }
      return result
    }
    expect(await statuses(undefined, 5)).toEqual([200, 200, 429, 429, 429])
    // Three units of the shared limit are left: the refusals consumed none.
    expect(await statuses(bobKey, 2)).toEqual([200, 200])
  })

  it('take requests in the other notation too', async () => {
    const entry = { type: 'requests', maxTokens: 2, tokensPerFill: 2, fillInterval: '1h' }
    const gateway = await startGateway(limited([entry]))
    const statuses = [await chat(gateway), await chat(gateway), await chat(gateway)].map(
      ({ status }) => status,
    )
    expect(statuses).toEqual([200, 200, 429])
  })

  it('let exactly as many pass as there are units when all come at once', async () => {
    const gateway = await startGateway(limited([{ requests: 20, unit: 'Hours' }]))
    const responses = await Promise.all(Array.from({ length: 60 }, () => chat(gateway)))
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(20)
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(40)
  })

  it('do not forward refused requests', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited([{ requests: 1, unit: 'Hours' }], openai))
    await chat(gateway, { model: 'gpt-test' })
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(429)
    expect(openai.seen).toHaveLength(1)
  })

  it('do not count requests without a valid key', async () => {
    const gateway = await startGateway(limited([{ requests: 1, unit: 'Hours' }]))
    for (let index = 0; index < 3; index++) {
      expect((await chat(gateway, {}, { headers: { authorization: 'Bearer tg-nobody' } })).status).toBe(401)
    }
    expect((await chat(gateway)).status).toBe(200)
  })
})

describe('token limits', () => {
  it('let the request that crosses the budget complete and refuse the next', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited([{ tokens: 50, unit: 'Hours' }], openai))
    // 30 tokens each: 50 -> 20 -> 0.
    const first = await chat(gateway, { model: 'gpt-test' })
    expect([first.status, rateHeaders(first).slice(0, 2)]).toEqual([200, [50, 50]])
    await first.text()
    const second = await chat(gateway, { model: 'gpt-test' })
    expect([second.status, rateHeaders(second).slice(0, 2)]).toEqual([200, [50, 20]])
    await second.text()
    const third = await chat(gateway, { model: 'gpt-test' })
    expect(third.status).toBe(429)
    expect(await third.text()).toBe('rate limit exceeded')
    expect(openai.seen).toHaveLength(2)
  })

  it('charge a stream after it has ended and never interrupt it', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited([{ tokens: 10, unit: 'Hours' }], openai))
    const response = await chat(gateway, { model: 'gpt-test', stream: true })
    const { text, broken } = await readStream(response)
    expect(broken).toBe(false)
    expect(text).toContain('data: [DONE]')
    expect((await chat(gateway, { model: 'gpt-test', stream: true })).status).toBe(429)
  })

  it('charge a stream whose client asked for no usage', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited([{ tokens: 10, unit: 'Hours' }], openai))
    const options = { model: 'gpt-test', stream: true, stream_options: { include_usage: false } }
    await readStream(await chat(gateway, options))
    expect((await chat(gateway, options)).status).toBe(429)
  })

  it('charge a stream whose client left early', async () => {
    const openai = await mockOpenAi()
    openai.behaviour.content = 'word '.repeat(400)
    openai.behaviour.pauseMs = 5
    const gateway = await startGateway(limited([{ tokens: 5, unit: 'Hours' }], openai))
    const leaving = new AbortController()
    const response = await chat(gateway, { model: 'gpt-test', stream: true }, { signal: leaving.signal })
    const reader = response.body?.getReader()
    for (let index = 0; index < 20; index++) await reader?.read()
    leaving.abort()
    await gateway.logged(1)
    expect((await chat(gateway, { model: 'gpt-test' })).status).toBe(429)
  })

  it('charge embeddings', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(limited([{ tokens: 7, unit: 'Hours' }], openai))
    const body = { model: 'text-embedding-3-small', input: 'text' }
    const first = await chat(gateway, body, { path: '/v1/embeddings' })
    expect(first.status).toBe(200)
    await first.text()
    expect((await chat(gateway, body, { path: '/v1/embeddings' })).status).toBe(429)
  })

  it('apply a separate budget to each key where an entry has a key', async () => {
    const gateway = await startGateway(limited([{ tokens: 1, unit: 'Hours', key: 'apiKey.id' }]))
    await (await chat(gateway)).text()
    expect((await chat(gateway)).status).toBe(429)
    const bob = await chat(gateway, {}, { headers: { authorization: `Bearer ${bobKey}` } })
    expect(bob.status).toBe(200)
  })

  it('restore the budget when the window resets', async () => {
    const gateway = await startGateway(limited([{ tokens: 1, unit: 'Seconds' }]))
    const refused = await until('a request is refused', async () => {
      const answer = await chat(gateway)
      await answer.text()
      return answer.status === 429 && answer
    })
    await new Promise((resolve) => setTimeout(resolve, Number(refused.headers.get('retry-after')) * 1000))
    expect((await chat(gateway)).status).toBe(200)
  })
})

describe('reloads', () => {
  it('retain consumption', async () => {
    const entry = { requests: 3, unit: 'Hours' }
    const gateway = await startGateway(limited([entry]))
    await chat(gateway)
    await chat(gateway)
    await gateway.reload({ ...limited([entry]), frontendPolicies: { http: { maxBufferSize: 1000000 } } })
    expect((await chat(gateway)).status).toBe(200)
    expect((await chat(gateway)).status).toBe(429)
  })

  it('retain consumption when the numbers change or entries change places', async () => {
    const entries = [
      { requests: 3, unit: 'Hours' },
      { requests: 100, unit: 'Minutes' },
    ]
    const gateway = await startGateway(limited(entries))
    await chat(gateway)
    await chat(gateway)
    await gateway.reload(
      limited([
        { requests: 100, unit: 'Minutes' },
        { requests: 4, unit: 'Hours' },
      ]),
    )
    const admitted = [await chat(gateway), await chat(gateway), await chat(gateway)].map(
      ({ status }) => status,
    )
    expect(admitted).toEqual([200, 200, 429])
  })
})
