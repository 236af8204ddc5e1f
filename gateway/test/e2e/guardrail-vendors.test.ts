import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import {
  mockBedrockGuardrails,
  mockContentSafety,
  mockModelArmor,
  mockModeration,
  mockPresidio,
  serviceFaults,
} from '../support/guard-vendors.ts'
import { aliceKey, aliceRecord, chat, openAiModel } from '../support/llm-config.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { type MockServer, member } from '../support/mock-server.ts'
import { until } from '../support/wait.ts'

const moderationKey = 'sk-guard-canary-77'
const azureKey = 'azure-guard-canary-78'
const googleToken = 'google-guard-canary-79'
const awsSecret = 'aws-guard-canary-80'

let gateway: Gateway
let moderation: MockServer
let azure: MockServer
let presidio: MockServer
let armor: MockServer
let bedrock: MockServer
let openai: MockOpenAi

const keyOf = (key: string, more: object = {}) => ({ backendAuth: { key }, ...more })

function models(): object[] {
  const openAIModeration = {
    endpoint: moderation.url,
    policies: keyOf(moderationKey, { http: { requestTimeout: '500ms' } }),
  }
  const azureContentSafety = {
    endpoint: azure.url,
    analyzeText: {},
    promptShields: {},
    policies: keyOf(azureKey),
  }
  const guard = { name: 'pii', presidio: { analyzer: { host: `127.0.0.1:${presidio.port}` } } }
  const googleModelArmor = {
    ...{ endpoint: armor.url, projectId: 'p', templateId: 't' },
    policies: keyOf(googleToken),
  }
  const aws = { accessKeyId: 'AKIDGUARD', secretAccessKey: awsSecret }
  const bedrockGuardrails = {
    ...{ endpoint: bedrock.url, guardrailIdentifier: 'gr1', guardrailVersion: '1', region: 'eu-central-1' },
    policies: { backendAuth: { aws } },
  }
  const tools = { ...guard, scope: ['toolInput'] }
  const guarded = {
    armored: { request: [{ googleModelArmor }], response: [{ googleModelArmor }] },
    applied: { request: [{ bedrockGuardrails }], response: [{ bedrockGuardrails }] },
    moderated: { request: [{ name: 'moderation', openAIModeration }] },
    open: { request: [{ openAIModeration: { ...openAIModeration, failureMode: 'failOpen' } }] },
    safe: {
      request: [{ name: 'safety', azureContentSafety, rejection: { status: 451, body: 'not here' } }],
    },
    masked: { request: [guard] },
    cleaned: { response: [guard] },
    windowed: { response: [guard], streaming: 'windowed' },
  }
  const echoing = Object.entries(guarded).map(([name, guardrails]) => ({
    name,
    provider: 'echo',
    guardrails,
  }))
  return [...echoing, openAiModel('gpt-tools', openai.url, { guardrails: { request: [tools] } })]
}

beforeAll(async () => {
  moderation = await mockModeration(moderationKey, 'file')
  azure = await mockContentSafety(azureKey, 'file')
  presidio = await mockPresidio('file')
  armor = await mockModelArmor(googleToken, 'file')
  bedrock = await mockBedrockGuardrails('AKIDGUARD', 'file')
  openai = await mockOpenAi({ lifetime: 'file' })
  const policies = { apiKey: { mode: 'strict', keys: [aliceRecord] } }
  gateway = await startGateway({ llm: { models: models(), policies } }, { lifetime: 'file' })
})

beforeEach(() => {
  for (const { seen } of [moderation, azure, presidio, armor, bedrock, openai]) seen.length = 0
})

async function say(model: string, content: string, more: object = {}) {
  const response = await chat(gateway, { model, messages: [{ role: 'user', content }], ...more })
  return { status: response.status, text: await response.text() }
}

async function contentOf(model: string, content: string): Promise<unknown> {
  const { text } = await say(model, content)
  return member(JSON.parse(text), 'choices', 0, 'message', 'content')
}

describe('guards of vendors', () => {
  it('reject by the moderation of OpenAI', async () => {
    expect(await contentOf('moderated', 'fine')).toBe('fine')
    expect(await say('moderated', 'something bad')).toEqual({
      status: 403,
      text: 'The request was rejected due to inappropriate content',
    })
    expect(moderation.seen).toHaveLength(2)
    expect(moderation.seen[0]?.json).toEqual({ model: 'omni-moderation-latest', input: ['fine'] })
  })

  it('reject by Azure AI Content Safety, with the configured response', async () => {
    expect(await contentOf('safe', 'fine')).toBe('fine')
    expect(azure.seen.map(({ json }) => json)).toEqual([{ text: 'fine' }, { userPrompt: 'fine' }])
    expect(await say('safe', 'something bad')).toEqual({ status: 451, text: 'not here' })
    expect(await say('safe', 'an attack')).toEqual({ status: 451, text: 'not here' })
  })

  it('reject by Model Armor, requests and responses', async () => {
    expect(await contentOf('armored', 'fine')).toBe('fine')
    expect(armor.seen.map(({ json }) => json)).toEqual([
      { userPromptData: { text: 'fine' } },
      { modelResponseData: { text: 'fine' } },
    ])
    expect((await say('armored', 'something bad')).status).toBe(403)
  })

  it('reject and mask by a guardrail of Bedrock', async () => {
    expect(await contentOf('applied', 'for Ann')).toBe('for {NAME}')
    expect(bedrock.seen.map(({ json }) => member(json, 'source'))).toEqual(['INPUT', 'OUTPUT'])
    expect((await say('applied', 'something bad')).status).toBe(403)
  })

  it('receive arguments of tool calls by their scope', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"to":"a@b.co"}' } }
    const messages = [
      { role: 'user', content: 'mail to c@d.co' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: 'sent to a@b.co' },
    ]
    await say('gpt-tools', '', { messages })
    expect(presidio.seen.map(({ json }) => member(json, 'text'))).toEqual(['{"to":"a@b.co"}'])
    const masked = { ...call, function: { name: 'f', arguments: '{"to":"<EMAIL_ADDRESS>"}' } }
    expect(member(openai.seen[0]?.json, 'messages')).toEqual([
      messages[0],
      { ...messages[1], tool_calls: [masked] },
      messages[2],
    ])
  })

  it('mask personal data found by Presidio, in Unicode', async () => {
    expect(await contentOf('masked', '👩‍👩‍👧 write to a@b.co 🙂')).toBe('👩‍👩‍👧 write to <EMAIL_ADDRESS> 🙂')
    expect(await contentOf('cleaned', '🙂 a@b.co')).toBe('🙂 <EMAIL_ADDRESS>')
  })

  it.each(['cleaned', 'windowed'])('mask streams: %s', async (model) => {
    const { status, text } = await say(model, '🙂 write to a@b.co now', { stream: true })
    expect(status).toBe(200)
    const pieces = [...text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, piece]) => piece)
    expect(pieces.join('')).toBe('🙂 write to <EMAIL_ADDRESS> now')
  })

  it.each(Object.entries(serviceFaults))('fail closed for a %s service', async (_, fault) => {
    moderation.next(fault)
    expect(await say('moderated', 'fine')).toEqual({
      status: 503,
      text: 'failed to process LLM request: prompt guard failed',
    })
    moderation.next(fault)
    expect((await say('open', 'fine')).status).toBe(200)
  })

  it('report outcomes in log and metrics, without credentials and content', async () => {
    moderation.next(serviceFaults['throttled'] ?? (() => {}))
    await say('moderated', 'content-canary fine')
    await say('moderated', 'content-canary bad')
    const reasons = () => gateway.requests().flatMap((line) => line['guards'] ?? [])
    await until('the rejection is logged', () =>
      reasons().some((each) => member(each, 'reason') === 'flagged: harassment, violence'),
    )
    expect(reasons()).toContainEqual({
      guard: 'moderation',
      phase: 'request',
      outcome: 'fail_closed',
      reason: 'openAIModeration responded with status 429, retry after 30',
    })
    const metrics = await gateway.metrics()
    expect(metrics).toMatch(
      /tollgate_guardrail_checks_total\{guard="moderation",phase="request",outcome="reject"\} [1-9]/,
    )
    const admin = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/config`)).text()
    for (const text of [gateway.stdout(), gateway.stderr(), metrics, admin]) {
      for (const canary of [moderationKey, azureKey, googleToken, awsSecret, aliceKey, 'content-canary'])
        expect(text).not.toContain(canary)
    }
  })
})
