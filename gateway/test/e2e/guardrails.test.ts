import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig } from '../support/llm-config.ts'
import { type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { type MockServer, member } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'
import { acts, hangs, mockWebhook, shownTo } from '../support/webhook.ts'

let gateway: Gateway
let openai: MockOpenAi
let anthropic: MockAnthropic
let webhook: MockServer
let openaiClient: OpenAI
let anthropicClient: Anthropic

function config(guardrails: object = {}) {
  const target = { host: `127.0.0.1:${webhook.port}` }
  return llmConfig(
    { openai, anthropic },
    {
      guardrails: {
        request: [{ name: 'in', webhook: { target } }],
        response: [{ name: 'out', webhook: { target } }],
        ...guardrails,
      },
    },
  )
}

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  webhook = await mockWebhook('file')
  gateway = await startGateway(config(), { lifetime: 'file' })
  openaiClient = new OpenAI({ apiKey: aliceKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
  anthropicClient = new Anthropic({ apiKey: aliceKey, baseURL: gateway.url, maxRetries: 0 })
})

beforeEach(() => {
  for (const { seen } of [openai, anthropic, webhook]) seen.length = 0
  openai.behaviour.content = 'I say mask to you, and more.'
  anthropic.behaviour.content = 'I say mask to you, and more.'
})

const clean = 'I say **** to you, and more.'

const callers = {
  async openai(content: string, stream: boolean) {
    const question = { model: 'gpt-test', messages: [{ role: 'user' as const, content }] }
    if (!stream) {
      const { choices } = await openaiClient.chat.completions.create(question)
      return choices[0]?.message.content
    }
    let text = ''
    for await (const { choices } of await openaiClient.chat.completions.create({
      ...question,
      stream: true,
    })) {
      text += choices[0]?.delta.content ?? ''
    }
    return text
  },
  async anthropic(content: string, stream: boolean) {
    const question = { model: 'claude-test', max_tokens: 100, messages: [{ role: 'user' as const, content }] }
    const answer = stream
      ? await anthropicClient.messages.stream(question).finalMessage()
      : await anthropicClient.messages.create(question)
    const [block] = answer.content
    return block?.type === 'text' ? block.text : undefined
  },
}

const cases = (['openai', 'anthropic'] as const).flatMap((client) =>
  [false, true].map((stream) => ({ client, stream })),
)

describe.each(cases)('guards and the $client SDK, stream: $stream', ({ client, stream }) => {
  const upstream = () => (client === 'openai' ? openai : anthropic)

  it('change the request to the model and the response from it', async () => {
    expect(await callers[client]('my mask is here', stream)).toBe(clean)
    expect(member(upstream().seen[0]?.json, 'messages', 0, 'content')).toBe('my **** is here')
    expect(webhook.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /request',
      'POST /response',
    ])
    expect(webhook.seen.map(({ text }) => text)).toEqual([
      '{"body":{"messages":[{"role":"user","content":"my mask is here"}]}}',
      '{"body":{"choices":[{"message":{"role":"assistant","content":"I say mask to you, and more."}}]}}',
    ])
  })

  it('reject a request without asking the model', async () => {
    await expect(callers[client]('please block me', stream)).rejects.toMatchObject({ status: 403 })
    expect(upstream().seen).toHaveLength(0)
  })

  it('reject an answer with the status of the webhook, and its tokens are counted all the same', async () => {
    const rejected = () => gateway.requests().filter(({ status }) => status === 451)
    const before = rejected().length
    webhook.next(acts({}), acts({ body: '{"error":{"message":"not for you"}}', status_code: 451 }))
    await expect(callers[client]('hello', stream)).rejects.toMatchObject({ status: 451 })
    const line = await until('the rejection is logged', () => rejected()[before])
    expect(line['refusedBy']).toBe('guardrail: out')
    expect(line['totalTokens']).toBeGreaterThan(0)
  })

  it('let nothing pass when the webhook fails', async () => {
    webhook.next((_, response) => response.end('nonsense'))
    await expect(callers[client]('hello', stream)).rejects.toMatchObject({ status: 503 })
    expect(upstream().seen).toHaveLength(0)
    webhook.next(acts({}), acts({ verdict: 'no' }))
    await expect(callers[client]('hello', stream)).rejects.toMatchObject({ status: 503 })
  })
})

describe('guards of token counts', () => {
  const count = (content: string) =>
    anthropicClient.messages.countTokens({ model: 'claude-test', messages: [{ role: 'user', content }] })

  it('change the texts to count', async () => {
    expect(await count('my mask')).toMatchObject({ input_tokens: 14 })
    expect(member(anthropic.seen[0]?.json, 'messages', 0, 'content')).toBe('my ****')
    expect(webhook.seen.map(({ path }) => path)).toEqual(['/request'])
  })

  it('reject them', async () => {
    await expect(count('please block me')).rejects.toMatchObject({ status: 403 })
    expect(anthropic.seen).toHaveLength(0)
  })
})

it('guards check files of text', async () => {
  const data = Buffer.from('please block me').toString('base64')
  const file = { filename: 'a.txt', file_data: `data:text/plain;base64,${data}` }
  const question = { model: 'gpt-test', messages: [{ role: 'user', content: [{ type: 'file', file }] }] }
  expect((await chat(gateway, question)).status).toBe(403)
  expect(openai.seen).toHaveLength(0)
})

describe('guards of calls that are translated', () => {
  it.each([false, true])('see and change them in the API of the client, stream: %s', async (stream) => {
    const response = await chat(gateway, {
      model: 'claude-test',
      stream,
      messages: [{ role: 'user', content: 'my mask' }],
    })
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(text).toContain('****')
    expect(text).not.toContain('mask')
    expect(anthropic.seen[0]?.text).toContain('my ****')
    expect(webhook.seen[1]?.text).toContain('"choices":[{"message":{"role":"assistant","content":"I say mask')
  })
})

describe('a stream that is rejected after its first byte', () => {
  it('is an error to the SDKs, and never looks complete', async () => {
    const windowed = await startGateway(config({ streaming: 'windowed' }))
    openai.behaviour.content = 'word '.repeat(1_000).trim()
    anthropic.behaviour.content = openai.behaviour.content
    openai.behaviour.pauseMs = 1
    anthropic.behaviour.pauseMs = 1
    const reject = () => webhook.next(acts({}), acts({}), acts({ body: 'enough of this', status_code: 403 }))
    const messages = [{ role: 'user' as const, content: 'hello' }]
    let text = ''
    const viaOpenAi = async () => {
      const client = new OpenAI({ apiKey: aliceKey, baseURL: `${windowed.url}/v1`, maxRetries: 0 })
      const stream = await client.chat.completions.create({ model: 'gpt-test', messages, stream: true })
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
    }
    reject()
    await expect(viaOpenAi()).rejects.toThrow('enough of this')
    expect(text.length).toBeGreaterThan(500)
    const client = new Anthropic({ apiKey: aliceKey, baseURL: windowed.url, maxRetries: 0 })
    reject()
    await expect(
      client.messages.stream({ model: 'claude-test', max_tokens: 9, messages }).finalMessage(),
    ).rejects.toThrow('enough of this')
    openai.behaviour.pauseMs = 0
    anthropic.behaviour.pauseMs = 0
  })
})

describe('guards', () => {
  it('report a failed check in plain text', async () => {
    webhook.next(acts('pass'))
    const response = await chat(gateway, { model: 'gpt-test' })
    expect(response.status).toBe(503)
    expect(response.headers.get('content-type')).toBe('text/plain')
    expect(await response.text()).toBe('failed to process LLM request: prompt guard failed')
    webhook.next(acts({}), acts('pass'))
    expect(await (await chat(gateway, { model: 'gpt-test' })).text()).toBe(
      'failed to process LLM response: prompt guard failed',
    )
  })

  it('are seen in the log and in metrics, without content', async () => {
    const masked = () =>
      gateway.requests().filter((line) => String(JSON.stringify(line['guards'])).includes('mask'))
    const before = masked().length
    await callers.openai('my mask is here', false)
    const line = await until('the call is logged', () => masked()[before])
    expect(line['guards']).toEqual([
      { guard: 'in', phase: 'request', outcome: 'mask', reason: 'Sensitive content detected' },
      { guard: 'out', phase: 'response', outcome: 'mask', reason: 'Sensitive content detected' },
    ])
    expect(JSON.stringify(line)).not.toContain('is here')
    expect(await gateway.metrics()).toMatch(
      /tollgate_guardrail_checks_total\{guard="in",phase="request",outcome="mask"\} [1-9]/,
    )
  })

  it('are asked no more when the client has left', async () => {
    webhook.next(hangs)
    const leaving = new AbortController()
    const response = chat(gateway, { model: 'gpt-test' }, { signal: leaving.signal }).catch(() => undefined)
    await until('the webhook is asked', () => webhook.seen.length === 1)
    leaving.abort()
    await response
    await until('its call is cancelled', () => webhook.seen[0]?.aborted === true)
    expect(openai.seen).toHaveLength(0)
  })

  it('receive text content only', async () => {
    await openaiClient.embeddings.create({ model: 'text-embedding-test', input: 'block' })
    await openaiClient.models.list()
    expect(webhook.seen).toHaveLength(0)
  })

  it('keep the connection to the webhook', async () => {
    const ports = new Set<string>()
    for (let index = 0; index < 5; index += 1) {
      await chat(gateway, { model: 'gpt-test' }).then((response) => response.text())
      ports.add(String(webhook.seen.length))
    }
    expect(webhook.seen.every(({ headers }) => headers['connection'] !== 'close')).toBe(true)
    expect(shownTo(webhook.seen[0] ?? neverSeen())).toEqual(['hello'])
  })
})

function neverSeen(): never {
  throw new Error('the webhook was not asked')
}
