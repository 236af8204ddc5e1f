import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { aliceRecord, chat, jsonHeaders, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { sharedGateway } from '../support/shared-gateway.ts'
import { until } from '../support/wait.ts'

const serving = sharedGateway()
const bob = { authorization: 'Bearer tg-canary-bob-91d0' }
const keys = [aliceRecord, { key: 'tg-canary-bob-91d0', metadata: { id: 'key-bob' } }]

function ruled(rules: unknown[], openai?: { url: string }) {
  return llmConfig(openai ? { openai } : {}, { policies: { apiKey: { keys }, authorization: { rules } } })
}

describe('authorization rules', () => {
  it('admit where an allow rule is true and refuse otherwise, errors counting as false', async () => {
    const openai = await mockOpenAi()
    const gateway = await serving(ruled(['apiKey.group == "platform"'], openai))
    expect((await chat(gateway)).status).toBe(200)
    // Bob's key has no group: the rule cannot be evaluated.
    const refused = await chat(gateway, { model: 'gpt-test' }, { headers: bob })
    expect(refused.status).toBe(403)
    expect(await refused.text()).toContain('authorization failed')
    expect(openai.seen).toHaveLength(0)
  })

  it('refuse where a deny rule is true or cannot be evaluated', async () => {
    const gateway = await serving(ruled([{ deny: 'apiKey.group == "blocked"' }]))
    expect((await chat(gateway)).status).toBe(200)
    expect((await chat(gateway, {}, { headers: bob })).status).toBe(403)
  })

  it('refuse where a require rule is false', async () => {
    const gateway = await serving(
      ruled([{ require: 'has(apiKey.group)' }, { require: 'request.headers["x-purpose"] == "test"' }]),
    )
    expect((await chat(gateway)).status).toBe(403)
    expect((await chat(gateway, {}, { headers: { 'x-purpose': 'test' } })).status).toBe(200)
    expect((await chat(gateway, {}, { headers: { ...bob, 'x-purpose': 'test' } })).status).toBe(403)
  })

  it('see the body of the request where they name it', async () => {
    const gateway = await serving(
      ruled([{ deny: 'has(llmRequest.max_tokens) && llmRequest.max_tokens > 1000' }]),
    )
    expect((await chat(gateway, { max_tokens: 1000 })).status).toBe(200)
    expect((await chat(gateway, { max_tokens: 1001 })).status).toBe(403)
  })

  it('let an allow rule on the body admit a request that no allow rule on the key admits', async () => {
    const gateway = await serving(ruled(['apiKey.group == "platform"', 'llmRequest.model == "echo"']))
    expect((await chat(gateway, { model: 'echo' }, { headers: bob })).status).toBe(200)
    expect((await chat(gateway, { model: 'other' }, { headers: bob })).status).not.toBe(200)
  })

  it('name the rule in the access log and nothing of it in the answer', async () => {
    const gateway = await startGateway(ruled([{ deny: 'request.path.endsWith("/completions")' }]))
    const refused = await chat(gateway)
    expect(refused.status).toBe(403)
    expect(await refused.text()).not.toContain('endsWith')
    const [line] = await gateway.logged(1)
    expect(line?.['refusedBy']).toMatch(/authorization/)
  })

  it('see integers beyond 2^53 as the client wrote them', async () => {
    const gateway = await serving(ruled([{ deny: 'llmRequest.seed == 9007199254740993' }]))
    const send = (seed: string) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: jsonHeaders,
        body: `{"model":"echo","messages":[{"role":"user","content":"hi"}],"seed":${seed}}`,
      })
    expect((await send('9007199254740993')).status).toBe(403)
    expect((await send('9007199254740992')).status).toBe(200)
  })

  it('let keys expire by the clock', async () => {
    const rules = [{ deny: 'timestamp(apiKey.expires) < now' }, { require: 'request.startTime <= now' }]
    const expiring = (expires: string) => {
      const record = { ...aliceRecord, metadata: { ...aliceRecord.metadata, expires } }
      return llmConfig({}, { policies: { apiKey: { keys: [record] }, authorization: { rules } } })
    }
    const gateway = await startGateway(expiring('2999-01-01T00:00:00Z'))
    expect((await chat(gateway)).status).toBe(200)
    await gateway.reload(expiring('2001-01-01T00:00:00Z'))
    expect((await chat(gateway)).status).toBe(403)
  })

  it('that name members which do not exist are refused at load', async () => {
    const gateway = await startGateway(ruled([]))
    gateway.write(ruled([{ deny: 'request.pth == "/x"' }, { deny: 'llm.totalTokens > 5' }]))
    const error = await until('the mistakes are reported', async () => (await gateway.status()).lastError)
    expect(error).toContain('unknown member "request.pth"; did you mean "request.path"?')
    expect(error).toContain('unknown member "llm.totalTokens"; it is available only after the response')
  })
})
