import { describe, expect, it } from 'vitest'
import { faultyUpstream } from '../support/faulty-upstream.ts'
import { startGateway } from '../support/gateway.ts'
import { aliceKey, chat, llmConfig, models, openAiModel } from '../support/llm-config.ts'
import { anthropicErrors, anthropicKey, mockAnthropic } from '../support/mock-anthropic.ts'
import { mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/wait.ts'

const promptText = 'prompt-canary-why-is-the-sky-blue'
const answerText = 'answer-canary-because-of-scattering'
const unknownKey = 'tg-unknown-canary-6611'
const queryText = 'query-canary-2201'
const canaries = { aliceKey, openAiKey, anthropicKey, promptText, answerText, unknownKey, queryText }

function leaks(text: string): string[] {
  return Object.entries(canaries)
    .filter(([, canary]) => text.includes(canary))
    .map(([name]) => name)
}

describe('secrets and content', () => {
  it('never appear in logs, metrics, admin answers or refusals', async () => {
    const openai = await mockOpenAi()
    const anthropic = await mockAnthropic()
    openai.behaviour.content = answerText
    anthropic.behaviour.content = answerText
    const dead = await faultyUpstream('refuses')
    const cut = await faultyUpstream('closes mid stream')
    const garbage = await faultyUpstream('garbage JSON')
    const config = llmConfig(
      {},
      {
        models: [
          ...models({ openai, anthropic }),
          openAiModel('dead', dead.url),
          openAiModel('cut', cut.url),
          openAiModel('garbage', garbage.url),
        ],
        policies: { authorization: { rules: [{ deny: 'llmRequest.user == "refused"' }] } },
      },
    )
    const gateway = await startGateway(config)
    const messages = [{ role: 'user', content: promptText }]
    const refusals: string[] = []

    for (const model of ['gpt-test', 'claude-test', 'echo']) {
      for (const stream of [false, true]) {
        await readStream(
          await chat(
            gateway,
            { model, messages, stream, user: 'a' },
            { path: `/v1/chat/completions?key=${queryText}` },
          ),
        )
        await readStream(
          await chat(gateway, { model, messages, stream, max_tokens: 5 }, { path: '/v1/messages' }),
        )
      }
    }
    for (const body of [
      { model: 'dead' },
      { model: 'garbage' },
      { model: 'cut', stream: true },
      { model: 'nobody' },
    ]) {
      refusals.push(await (await chat(gateway, { ...body, messages })).text())
    }
    openai.next(openAiErrors.failed)
    anthropic.next(anthropicErrors.unauthorized)
    for (const model of ['gpt-test', 'claude-test']) {
      refusals.push(await (await chat(gateway, { model, messages })).text())
    }
    refusals.push(
      await (
        await chat(gateway, { messages }, { headers: { authorization: `Bearer ${unknownKey}` } })
      ).text(),
    )
    refusals.push(await (await chat(gateway, { messages, user: 'refused' })).text())
    refusals.push(await (await chat(gateway, { messages, model: 5 })).text())
    const broken = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${aliceKey}` },
      body: `{"model": "echo", "messages": "${promptText}`,
    })
    refusals.push(await broken.text())

    expect(refusals.map(leaks)).toEqual(refusals.map(() => []))
    expect(leaks(await gateway.metrics())).toEqual([])
    for (const path of ['/api/config/status', '/api/config/schema', '/']) {
      const response = await fetch(`http://127.0.0.1:${gateway.adminPort}${path}`)
      expect([path, leaks(await response.text())]).toEqual([path, []])
    }

    gateway.write(JSON.stringify({ ...config, llm: { ...config.llm, models: { apiKey: openAiKey } } }))
    const status = await until('the bad file is noticed', async () => {
      const now = await gateway.status()
      return now.lastError === undefined ? undefined : now
    })
    expect(leaks(status.lastError ?? '')).toEqual([])

    await gateway.stop()
    expect(gateway.requests().length).toBeGreaterThan(20)
    expect(leaks(gateway.stdout())).toEqual([])
    expect(leaks(gateway.stderr())).toEqual([])
  })
})
