import { describe, expect, it } from 'vitest'
import { fixtureGuards, jsonReply, pass, sentTo } from '../../../../../test/fixtures/guardrails.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import type { OpenAiModerationConfig } from './open-ai-moderation.ts'

const policies = { backendAuth: { key: 'sk-canary' } }
const chat = (...contents: string[]) => ({
  model: 'm',
  messages: contents.map((content) => ({ role: 'user', content })),
})

/** Flags texts with `bad`. */
function moderate(request: OutgoingRequest): Reply {
  const sent = sentTo(request)
  const input = typeof sent === 'object' && sent !== null && 'input' in sent ? sent.input : []
  const results = (Array.isArray(input) ? input : []).map((text: unknown) => {
    const flagged = String(text).includes('bad')
    return { flagged, categories: { harassment: flagged, 'self-harm/intent': flagged, violence: false } }
  })
  return jsonReply({ id: 'modr-1', model: 'omni-moderation-2024-09-26', results })
}

async function ask(
  config: OpenAiModerationConfig,
  request: object,
  answer: (request: OutgoingRequest) => Reply = moderate,
) {
  const guards = fixtureGuards({ request: [{ openAIModeration: config }] }, answer)
  return { ...(await pass(guards, { request })), calls: guards.calls }
}

describe('openAIModeration', () => {
  it('sends the texts to the API of OpenAI', async () => {
    const { status, calls } = await ask({ policies }, chat('one', '', 'two'))
    expect(status).toBe(200)
    expect(calls).toHaveLength(1)
    expect(calls[0]).toMatchObject({
      origin: 'https://api.openai.com:443',
      path: '/v1/moderations',
      method: 'POST',
      headers: { authorization: 'Bearer sk-canary', 'content-type': 'application/json' },
    })
    expect(calls[0]?.connection?.tls).toBeDefined()
    expect(sentTo(calls[0])).toEqual({ model: 'omni-moderation-latest', input: ['one', 'two'] })
  })

  it('rejects flagged content with the categories as reason', async () => {
    const { status, text, asked, exchange } = await ask({ policies }, chat('fine', 'bad'))
    expect({ status, asked }).toEqual({ status: 403, asked: undefined })
    expect(text).toBe('The request was rejected due to inappropriate content')
    expect(exchange.guards).toMatchObject([
      { outcome: 'reject', reason: 'flagged: harassment, self-harm/intent' },
    ])
  })

  it('checks responses, and audits', async () => {
    const guard = { openAIModeration: { policies, action: 'audit' as const } }
    const { status, exchange } = await pass(fixtureGuards({ response: [guard] }, moderate), {
      answer: JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'bad' } }] }),
    })
    expect(status).toBe(200)
    expect(exchange.guards).toMatchObject([{ outcome: 'audit_reject', phase: 'response' }])
  })

  it('sends long texts in pieces that overlap, and many texts in several calls', async () => {
    const long = `${'x '.repeat(4_999)}bad${' y'.repeat(10_000)}`
    expect((await ask({ policies }, chat(long))).status).toBe(403)
    const { calls, status } = await ask({ policies }, chat(...Array.from({ length: 70 }, () => 'fine')))
    expect({ status, calls: calls.length }).toEqual({ status: 200, calls: 3 })
  })

  it('calls another server with the same API', async () => {
    const endpoint = 'http://moderation.test:8080/openai/'
    const { calls } = await ask({ endpoint, model: 'own' }, chat('one'))
    expect(calls[0]).toMatchObject({
      origin: 'http://moderation.test:8080',
      path: '/openai/v1/moderations',
    })
    expect(calls[0]?.headers['authorization']).toBeUndefined()
    expect(sentTo(calls[0])).toMatchObject({ model: 'own' })
  })

  it.each<[string, () => Reply]>([
    ['an error', () => jsonReply({ error: { message: 'sk-canary' } }, 401)],
    ['no results', () => jsonReply({ id: 'modr-1' })],
    ['fewer results than inputs', () => jsonReply({ results: [] })],
    ['a result without flagged', () => jsonReply({ results: [{}] })],
    ['flagged as text', () => jsonReply({ results: [{ flagged: 'false' }] })],
    ['a list', () => jsonReply([])],
    ['garbage', () => jsonReply('<html>')],
    ['duplicate keys', () => jsonReply('{"results":[{"flagged":true,"flagged":false}]}')],
    ['invalid UTF-8', () => ({ status: 200, headers: {}, body: Buffer.from([0x7b, 0xff, 0x7d]) })],
    ['an encoding', () => ({ ...jsonReply({}), headers: { 'content-encoding': 'gzip' } })],
    ['a redirect', () => ({ status: 302, headers: { location: 'http://evil.test' }, body: undefined })],
    ['a huge body', () => jsonReply(`{"results":"${'x'.repeat(3_000_000)}"}`)],
  ])('fails for %s', async (_, answer) => {
    const { status, asked, text, exchange } = await ask({ policies }, chat('one'), answer)
    expect({ status, asked }).toEqual({ status: 503, asked: undefined })
    expect(text).toBe('failed to process LLM request: prompt guard failed')
    expect(JSON.stringify(exchange.guards)).not.toContain('canary')
    expect((await ask({ policies, failureMode: 'failOpen' }, chat('one'), answer)).status).toBe(200)
  })

  it('reports the wait that a throttling service asks for', async () => {
    const throttled = () => ({ ...jsonReply({}, 429), headers: { 'retry-after': '20' } })
    const { exchange } = await ask({ policies }, chat('one'), throttled)
    expect(exchange.guards).toMatchObject([
      { outcome: 'fail_closed', reason: 'openAIModeration responded with status 429, retry after 20' },
    ])
  })
})
