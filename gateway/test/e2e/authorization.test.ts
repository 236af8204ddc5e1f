import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { aliceRecord, chat, llmConfig } from '../support/llm-config.ts'
import { mockOpenAi } from '../support/mock-openai.ts'

const bob = { authorization: 'Bearer tg-canary-bob-91d0' }
const keys = [aliceRecord, { key: 'tg-canary-bob-91d0', metadata: { id: 'key-bob' } }]

function ruled(rules: unknown[], openai?: { url: string }) {
  return llmConfig(openai ? { openai } : {}, { policies: { apiKey: { keys }, authorization: { rules } } })
}

describe('authorization rules', () => {
  it('admit where an allow rule holds and refuse otherwise, errors counting as false', async () => {
    const openai = await mockOpenAi()
    const gateway = await startGateway(ruled(['apiKey.group == "platform"'], openai))
    expect((await chat(gateway)).status).toBe(200)
    // Bob's key has no group: the rule cannot be evaluated.
    const refused = await chat(gateway, { model: 'gpt-test' }, { headers: bob })
    expect(refused.status).toBe(403)
    expect(await refused.text()).toContain('authorization failed')
    expect(openai.seen).toHaveLength(0)
  })

  it('refuse where a deny rule holds or cannot be evaluated', async () => {
    const gateway = await startGateway(ruled([{ deny: 'apiKey.group == "blocked"' }]))
    expect((await chat(gateway)).status).toBe(200)
    expect((await chat(gateway, {}, { headers: bob })).status).toBe(403)
  })

  it('refuse where a require rule does not hold', async () => {
    const gateway = await startGateway(
      ruled([{ require: 'has(apiKey.group)' }, { require: 'request.headers["x-purpose"] == "test"' }]),
    )
    expect((await chat(gateway)).status).toBe(403)
    expect((await chat(gateway, {}, { headers: { 'x-purpose': 'test' } })).status).toBe(200)
    expect((await chat(gateway, {}, { headers: { ...bob, 'x-purpose': 'test' } })).status).toBe(403)
  })

  it('see the body of the request where they name it', async () => {
    const gateway = await startGateway(
      ruled([{ deny: 'has(llmRequest.max_tokens) && llmRequest.max_tokens > 1000' }]),
    )
    expect((await chat(gateway, { max_tokens: 1000 })).status).toBe(200)
    expect((await chat(gateway, { max_tokens: 1001 })).status).toBe(403)
  })

  it('let an allow rule on the body admit what an allow rule on the key does not', async () => {
    const gateway = await startGateway(ruled(['apiKey.group == "platform"', 'llmRequest.model == "echo"']))
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
})
