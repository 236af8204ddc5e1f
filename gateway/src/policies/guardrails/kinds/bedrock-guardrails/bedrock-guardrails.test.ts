import { describe, expect, it } from 'vitest'
import { fixtureGuards, jsonReply, pass, sentTo } from '../../../../../test/fixtures/guardrails.ts'
import { parseJsonObject } from '../../../../lib/json/json.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import { type BedrockGuardrailsConfig, checkBedrockGuardrails } from './bedrock-guardrails.ts'

const aws = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'aws-canary' }
const config: BedrockGuardrailsConfig = {
  guardrailIdentifier: 'gr1abc',
  guardrailVersion: '1',
  region: 'eu-central-1',
  policies: { backendAuth: { aws } },
}
const chat = (...contents: string[]) => ({
  model: 'm',
  messages: contents.map((content) => ({ role: 'user', content })),
})

function blocksOf(request: OutgoingRequest): string[] {
  const { content } = Object(sentTo(request))
  return (Array.isArray(content) ? content : []).map((block) => String(Object(Object(block).text).text))
}

/** Answers of the published schema: `bad` is blocked, `Ann` anonymized. */
function bedrock(request: OutgoingRequest): Reply {
  const blocks = blocksOf(request)
  const all = blocks.join('\n')
  const topicPolicy = { topics: [{ name: 'weapons', type: 'DENY', action: 'BLOCKED' }] }
  const pii = { piiEntities: [{ type: 'NAME', match: 'Ann', action: 'ANONYMIZED' }] }
  const usage = { topicPolicyUnits: 1 }
  if (all.includes('bad')) {
    const outputs = [{ text: 'Sorry, not possible.' }]
    return jsonReply({ action: 'GUARDRAIL_INTERVENED', outputs, assessments: [{ topicPolicy }], usage })
  }
  if (all.includes('Ann')) {
    const outputs = blocks.map((text) => ({ text: text.replaceAll('Ann', '{NAME}') }))
    const assessments = [{ sensitiveInformationPolicy: pii, invocationMetrics: {} }]
    return jsonReply({ action: 'GUARDRAIL_INTERVENED', outputs, assessments, usage })
  }
  return jsonReply({ action: 'NONE', outputs: [], assessments: [{}], usage })
}

async function ask(
  more: Partial<BedrockGuardrailsConfig>,
  request: object,
  answer: (request: OutgoingRequest) => Reply = bedrock,
) {
  const guards = fixtureGuards({ request: [{ bedrockGuardrails: { ...config, ...more } }] }, answer)
  return { ...(await pass(guards, { request })), calls: guards.calls }
}

function contentsOf(asked: string | undefined): unknown {
  const messages = parseJsonObject(asked ?? '')?.['messages']
  return Array.isArray(messages) ? messages.map((message) => Object(message).content) : undefined
}

describe('bedrockGuardrails', () => {
  it('applies the guardrail to signed texts', async () => {
    const { status, calls } = await ask({}, chat('one', '', 'two'))
    expect(status).toBe(200)
    expect(calls[0]).toMatchObject({
      origin: 'https://bedrock-runtime.eu-central-1.amazonaws.com:443',
      path: '/guardrail/gr1abc/version/1/apply',
    })
    expect(calls[0]?.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/bedrock\/aws4_request, /,
    )
    expect(sentTo(calls[0])).toEqual({
      source: 'INPUT',
      content: [{ text: { text: 'one' } }, { text: { text: 'two' } }],
    })
  })

  it('rejects blocked content', async () => {
    const { status, exchange, text } = await ask({}, chat('bad'))
    expect(status).toBe(403)
    expect(text).not.toContain('Sorry')
    expect(exchange.guards).toMatchObject([{ outcome: 'reject', reason: 'blocked: topicPolicy' }])
  })

  it('masks anonymized content in its texts', async () => {
    const { asked, exchange } = await ask({}, chat('for Ann', '', 'fine'))
    expect(contentsOf(asked)).toEqual(['for {NAME}', '', 'fine'])
    expect(exchange.guards).toMatchObject([{ outcome: 'mask', reason: 'masked: sensitiveInformationPolicy' }])
  })

  it('rejects anonymized content whose outputs do not correspond to the texts', async () => {
    const answer = (request: OutgoingRequest) => {
      const reply = parseJsonObject(Buffer.from(bedrock(request).body as Uint8Array).toString())
      return jsonReply({ ...reply, outputs: [] })
    }
    expect((await ask({}, chat('for Ann'), answer)).status).toBe(403)
  })

  it('sends long texts in blocks within the quota of a call', async () => {
    const long = `${'x'.repeat(30_000)}Ann`
    const { asked, calls } = await ask({}, chat(long, 'fine'))
    const sizes = calls.map((call) => blocksOf(call).join('').length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(25_000)
    expect(contentsOf(asked)).toEqual([`${'x'.repeat(30_000)}{NAME}`, 'fine'])
  })

  it.each(['bad', 'Ann'])('rejects %s across blocks of a long text', async (text) => {
    const { status, calls } = await ask({}, chat(`${'x'.repeat(24_998)}${text}${'y'.repeat(100)}`))
    expect(status).toBe(403)
    expect(Math.max(...calls.map((call) => blocksOf(call).join('').length))).toBeLessThanOrEqual(25_000)
  })

  it('masks content beside the border of blocks', async () => {
    const before = `${'x'.repeat(24_990)} `
    const { asked } = await ask({}, chat(`${before}Ann${'y'.repeat(100)}Ann`))
    expect(contentsOf(asked)).toEqual([`${before}{NAME}${'y'.repeat(100)}{NAME}`])
  })

  it('applies it to responses as output', async () => {
    const guards = fixtureGuards({ response: [{ bedrockGuardrails: config }] }, bedrock)
    await pass(guards)
    expect(sentTo(guards.calls[0])).toMatchObject({ source: 'OUTPUT' })
  })

  it('signs the path of an ARN for the region of the guardrail', async () => {
    const guardrailIdentifier = 'arn:aws:bedrock:eu-central-1:123456789012:guardrail/gr1abc'
    const { calls } = await ask({ guardrailIdentifier, endpoint: 'https://vpce.test' }, chat('one'))
    expect(calls[0]).toMatchObject({
      origin: 'https://vpce.test:443',
      path: '/guardrail/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aguardrail%2Fgr1abc/version/1/apply',
    })
    expect(calls[0]?.headers['authorization']).toContain('/eu-central-1/bedrock/')
  })

  it.each([
    ['no action', {}],
    ['another action', { action: 'ALLOW' }],
    ['no assessments', { action: 'GUARDRAIL_INTERVENED', assessments: 'none' }],
    ['an exception', { message: 'The security token included in the request is invalid.' }],
  ])('fails for a response with %s', async (_, response) => {
    expect((await ask({}, chat('fine'), () => jsonReply(response))).status).toBe(503)
  })

  it('refuses identifiers, versions and regions that the service refuses', () => {
    const found: string[] = []
    const wrong = { guardrailIdentifier: 'a/b', guardrailVersion: '0', region: 'eu.central' }
    checkBedrockGuardrails(wrong, (path) => found.push(path.join('.')))
    expect(found).toEqual(['guardrailIdentifier', 'guardrailVersion', 'region'])
    checkBedrockGuardrails(config, (path) => found.push(path.join('.')))
    expect(found).toHaveLength(3)
  })
})
