import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig } from '../support/llm-config.ts'
import { type MockAnthropic, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { member, startMockServer } from '../support/mock-server.ts'
import { rawConnect } from '../support/raw-http.ts'
import { eventsOf, readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

let gateway: Gateway
let openai: MockOpenAi
let anthropic: MockAnthropic

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
  anthropic = await mockAnthropic({ lifetime: 'file' })
  gateway = await startGateway(llmConfig({ openai, anthropic }), { lifetime: 'file' })
})

function messages(model: string) {
  return chat(gateway, { model, max_tokens: 100, stream: true }, { path: '/v1/messages' })
}

describe('a streamed answer', () => {
  it('arrives event by event while the model is still writing', async () => {
    openai.behaviour.pauseMs = 100
    const started = Date.now()
    const response = await chat(gateway, { model: 'gpt-test', stream: true })
    const reader = response.body?.getReader()
    await reader?.read()
    const firstAfter = Date.now() - started
    let last = await reader?.read()
    while (last && !last.done) last = await reader?.read()
    openai.behaviour.pauseMs = 0
    expect(Date.now() - started - firstAfter).toBeGreaterThan(300)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  })

  it("of the same format is identical to the provider's, byte for byte", async () => {
    const through = await readStream(
      await chat(gateway, { model: 'gpt-test', stream: true, stream_options: { include_usage: true } }),
    )
    const direct = await fetch(`${openai.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-openai-canary-5f2c9d' },
      body: JSON.stringify({ model: 'gpt-test', stream: true, stream_options: { include_usage: true } }),
    })
    expect(through.text).toBe(await direct.text())
  })

  it('carries the usage chunk unless the client declined it', async () => {
    const usageOf = async (stream_options?: object) => {
      const { text } = await readStream(
        await chat(gateway, { model: 'gpt-test', stream: true, stream_options }),
      )
      expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
      return eventsOf(text).some(
        ({ data }) => data !== '[DONE]' && member(JSON.parse(data), 'usage', 'total_tokens'),
      )
    }
    expect(await usageOf()).toBe(true)
    expect(await usageOf({ include_usage: true })).toBe(true)
    expect(await usageOf({ include_usage: false })).toBe(false)
    expect(
      openai.seen.every(
        ({ json }) => !member(json, 'stream') || member(json, 'stream_options', 'include_usage'),
      ),
    ).toBe(true)
  })

  it('is refused with 400 when stream_options is no object', async () => {
    const response = await chat(gateway, { model: 'gpt-test', stream: true, stream_options: 'usage' })
    expect(response.status).toBe(400)
  })
})

describe('many streams at once', () => {
  it('each carry their own answer', async () => {
    const answers = await Promise.all(
      Array.from({ length: 150 }, async (_, index) => {
        const content = `this is question number ${index} of many`
        const path = index % 2 === 0 ? '/v1/chat/completions' : '/v1/messages'
        const body = { stream: true, max_tokens: 50, messages: [{ role: 'user', content }] }
        const { text } = await readStream(await chat(gateway, body, { path }))
        const pieces = eventsOf(text)
          .filter(({ data }) => data !== '[DONE]')
          .map(({ data }) => JSON.parse(data))
          .map(
            (event) =>
              member(event, 'choices', 0, 'delta', 'content') ?? member(event, 'delta', 'text') ?? '',
          )
        return pieces.join('').includes(content)
      }),
    )
    expect(answers).toEqual(answers.map(() => true))
  })
})

describe('a client that leaves', () => {
  it.each([
    ['of the same format', 'gpt-test', () => openai],
    ['translated', 'claude-test', () => anthropic],
  ])('ends the call upstream, %s', async (_, model, upstream) => {
    const mock = upstream()
    mock.seen.length = 0
    mock.behaviour.pauseMs = 50
    const leaving = new AbortController()
    const response = await chat(gateway, { model, stream: true }, { signal: leaving.signal })
    await response.body?.getReader().read()
    expect(mock.seen[0]?.aborted).toBe(false)
    leaving.abort()
    await until('the provider sees the client leave', () => mock.seen[0]?.aborted)
    mock.behaviour.pauseMs = 0
  })

  it('before the first byte ends the call upstream', async () => {
    openai.seen.length = 0
    openai.next(() => {})
    const leaving = new AbortController()
    const pending = chat(gateway, { model: 'gpt-test' }, { signal: leaving.signal }).catch(() => 'left')
    await until('the call reaches the provider', () => openai.seen.length === 1)
    leaving.abort()
    expect(await pending).toBe('left')
    await until('the provider sees the client leave', () => openai.seen[0]?.aborted)
  })
})

describe('a slow client', () => {
  it('slows the provider down instead of filling memory', async () => {
    let written = 0
    let drained = true
    const line = `data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(8000)}"}}]}\n\n`
    const flood = await startMockServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const pump = () => {
        while (!response.destroyed && written < 256 * 1024 * 1024) {
          written += line.length
          if (!response.write(line)) {
            drained = false
            response.once('drain', pump)
            return
          }
        }
        response.end()
      }
      pump()
    })
    const flooded = await startGateway(llmConfig({ openai: flood }))
    const connection = await rawConnect(flooded.port)
    connection.socket.pause()
    const body = JSON.stringify({ model: 'gpt-test', stream: true, messages: [] })
    connection.send(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${aliceKey}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    await until('the provider has to wait', () => !drained)
    let before = -1
    await until('the flow stands still', async () => {
      const still = before === written
      before = written
      await delay(300)
      return still
    })
    // The capacity of the sockets and the gateway's buffers, far below the size of the provider's stream.
    expect(written).toBeLessThan(32 * 1024 * 1024)
  })
})

describe('an upstream that is cut off mid-stream', () => {
  it.each([['gpt-test'], ['claude-test']])(
    'ends chat completions of %s in an error event, without [DONE]',
    async (model) => {
      openai.behaviour.cutAfter = 4
      anthropic.behaviour.cutAfter = 4
      const { text } = await readStream(await chat(gateway, { model, stream: true }))
      openai.behaviour.cutAfter = undefined
      anthropic.behaviour.cutAfter = undefined
      expect(text).not.toContain('[DONE]')
      const last = eventsOf(text).at(-1)
      expect(member(JSON.parse(last?.data ?? ''), 'error', 'message')).toEqual(expect.any(String))
    },
  )

  it.each([['gpt-test'], ['claude-test']])(
    'ends messages of %s in an error event, without message_stop',
    async (model) => {
      openai.behaviour.cutAfter = 4
      anthropic.behaviour.cutAfter = 4
      const { text } = await readStream(await messages(model))
      openai.behaviour.cutAfter = undefined
      anthropic.behaviour.cutAfter = undefined
      expect(text).not.toContain('message_stop')
      const last = eventsOf(text).at(-1)
      expect(last?.event).toBe('error')
      expect(JSON.parse(last?.data ?? '')).toMatchObject({
        type: 'error',
        error: { message: expect.any(String) },
      })
    },
  )

  it('marks the answer as incomplete in the access log, with estimated tokens', async () => {
    const cut = await startGateway(llmConfig({ openai, anthropic }))
    openai.behaviour.cutAfter = 4
    await readStream(await chat(cut, { model: 'gpt-test', stream: true }))
    openai.behaviour.cutAfter = undefined
    const [line] = await cut.logged(1)
    expect(line).toMatchObject({ tokensEstimated: true, totalTokens: expect.any(Number) })
    expect(line?.['totalTokens']).toBeGreaterThan(0)
  })
})
