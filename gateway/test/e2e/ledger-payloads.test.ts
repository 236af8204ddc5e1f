import { describe, expect, it } from 'vitest'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { ledgerRows } from '../support/ledger-rows.ts'
import { chat, llmConfig } from '../support/llm-config.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { openSession } from '../support/mcp-raw.ts'
import { mockOpenAi } from '../support/mock-openai.ts'
import { sqliteUrl } from '../support/resource-api.ts'
import { readStream } from '../support/sse.ts'

const card = '4111 1111 1111 1111'
const regex = { action: 'audit', rules: [{ builtin: 'creditCard' }] }

async function serve(database: object, guardrails: object = {}) {
  const openai = await mockOpenAi()
  openai.behaviour.content = `my card is ${card}, and more words`
  const url = sqliteUrl()
  const config: GatewayConfig = {
    ...llmConfig({ openai }, { guardrails }),
    mcp: { targets: [programTarget('files')] },
    config: { database: { url }, logging: { database } },
  }
  return { url, gateway: await startGateway(config) }
}

const prompt = { messages: [{ role: 'user', content: `charge ${card}` }] }
const texts = (role: string, content: string) => JSON.stringify([{ role, content }])

describe('payloads in the ledger', () => {
  it('are the redacted texts of responses and assembled streams', async () => {
    const { gateway, url } = await serve({ payloads: true }, { request: [{ regex }] })
    for (const stream of [false, true])
      await readStream(await chat(gateway, { model: 'gpt-test', stream, ...prompt }))
    const rows = await ledgerRows(url, 2)
    expect(rows).toHaveLength(2)
    for (const row of rows) {
      expect(row).toMatchObject({
        has_payload: 1,
        request: texts('user', 'charge <CREDIT_CARD>'),
        response: texts('assistant', 'my card is <CREDIT_CARD>, and more words'),
      })
    }
  })

  it('are cut to maxPayloadSize', async () => {
    const { gateway, url } = await serve({ payloads: true, maxPayloadSize: 10 })
    for (const stream of [false, true])
      await readStream(await chat(gateway, { model: 'gpt-test', stream, ...prompt }))
    for (const row of await ledgerRows(url, 2)) {
      expect(row).toMatchObject({
        request: texts('user', 'charge 411…'),
        response: texts('assistant', 'my card is…'),
      })
    }
  })

  it('include arguments and results of MCP calls, without those of other messages', async () => {
    const { gateway, url } = await serve({ payloads: true })
    const session = await openSession(gateway.mcpUrl)
    const result = await session.request('tools/call', { name: 'whoami', arguments: { a: 'b' } })
    await session.request('tools/list')
    const rows = await ledgerRows(url, 4)
    const [call, ...others] = rows.toSorted(
      (one, other) => Number(other['has_payload']) - Number(one['has_payload']),
    )
    expect(call).toMatchObject({ mcp_method: 'tools/call' })
    expect(JSON.parse(String(call?.['request']))).toMatchObject({
      params: { name: 'whoami', arguments: { a: 'b' } },
    })
    expect(JSON.parse(String(call?.['response']))).toMatchObject({ result })
    for (const row of others) expect(row).toMatchObject({ has_payload: 0, request: null, response: null })
  })

  it('are absent by default', async () => {
    const { gateway, url } = await serve({})
    await readStream(await chat(gateway, { model: 'gpt-test', ...prompt }))
    expect(await ledgerRows(url, 1)).toMatchObject([{ has_payload: 0, request: null, response: null }])
  })
})
