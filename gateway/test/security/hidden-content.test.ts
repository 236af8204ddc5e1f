import { beforeAll, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { chat, llmConfig } from '../support/llm-config.ts'

let gateway: Gateway

beforeAll(async () => {
  const guard = { regex: { action: 'reject', rules: [{ pattern: 'SECRET' }] } }
  const guardrails = { request: [guard], unknownContent: 'allow' }
  gateway = await startGateway(
    llmConfig(
      {},
      {
        models: [
          { name: 'echo', provider: 'echo' },
          { name: 'open', provider: 'echo', guardrails },
        ],
        guardrails: { request: [guard] },
      },
    ),
    { lifetime: 'file' },
  )
})

const part = (value: object) => ({ messages: [{ role: 'user', content: [value] }] })
const item = (value: object) => ({ input: [value] })

it.each([
  ['/v1/chat/completions', part({ type: 'text', text: 'ok' }), 200],
  ['/v1/chat/completions', part({ type: 'refusal', text: 'ok', refusal: 'SECRET' }), 403],
  ['/v1/chat/completions', part({ type: 'thinking', text: 'ok', thinking: 'SECRET' }), 403],
  ['/v1/chat/completions', part({ type: 'hologram', text: 'ok', hologram: 'SECRET' }), 503],
  ['/v1/messages', part({ type: 'mcp_tool_result', content: 'SECRET' }), 403],
  ['/v1/responses', item({ type: 'shell_call_output', output: [{ stdout: 'ok', stderr: 'SECRET' }] }), 403],
  ['/v1/responses', item({ type: 'hologram_output', hologram: 'SECRET' }), 503],
])('%s with %j', async (path, body, status) => {
  expect((await chat(gateway, { max_tokens: 9, messages: undefined, ...body }, { path })).status).toBe(status)
})

it('stays refused by shared guards where a model allows content of unknown type', async () => {
  const body = part({ type: 'hologram', hologram: 'SECRET' })
  expect((await chat(gateway, { ...body, model: 'open' })).status).toBe(503)
})
