import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { conversations } from '../../../../test/fixtures/guardrail-streams.ts'
import {
  acts,
  type FixtureCall,
  fixtureGuards,
  masking,
  pass,
  webhookGuard,
} from '../../../../test/fixtures/guardrails.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { createRecording } from '../../../pipeline/recording/recording.ts'
import type { GuardrailsConfig } from '../config.ts'
import { compileSearch } from '../kinds/regex/search.ts'
import { payloadText } from './payload-text.ts'
import { compilePayloads } from './payloads.ts'

const card = '4111 1111 1111 1111'
const chat = (content: string) => ({ model: 'm', messages: [{ role: 'user', content }] })

type Options = {
  maxPayloadSize?: number | undefined
  isRecorded?: boolean
  webhook?: typeof masking
  retains?: Exchange['retains']
}

/** Sends a call through guards, and returns the payload of its entry. */
async function stored(config: GuardrailsConfig, call: FixtureCall, options: Options = {}) {
  return (await finished(config, call, options)).payload
}

/** Sends a call through guards, and returns its exchange. */
async function finished(config: GuardrailsConfig, call: FixtureCall, options: Options = {}) {
  const { isRecorded = true, webhook = acts({}) } = options
  const maxPayloadSize = 'maxPayloadSize' in options ? options.maxPayloadSize : 1_000
  const unused: GuardrailsConfig = { request: [{ regex: { rules: [{ pattern: 'no such text' }] } }] }
  const ofModels = [{ scope: 'model m', config: unused }]
  const guards = fixtureGuards(config, webhook, { ofModels })
  const payloads = compilePayloads({ shared: [{ scope: 'llm', config }], ofModels, maxPayloadSize })
  const { exchange } = await pass(
    {
      ...guards,
      policy: {
        name: 'both',
        onRequest(received) {
          if (isRecorded) received.recording = createRecording('off')
          received.retains = options.retains
          payloads.onRequest?.(received)
          return guards.policy.onRequest?.(received)
        },
        async onReply(received, reply) {
          const checked = (await guards.policy.onReply?.(received, reply)) ?? reply
          return payloads.onReply?.(received, checked) ?? checked
        },
      },
    },
    call,
  )
  payloads.onEnd?.(exchange)
  return exchange
}

const cards = (action: 'mask' | 'reject' | 'audit'): GuardrailsConfig => {
  const guard = { regex: { action, rules: [{ builtin: 'creditCard' as const }] } }
  return { request: [guard], response: [guard] }
}

describe('payloads', () => {
  it('are the texts of prompt and response', async () => {
    const call = { request: chat('Hello'), answer: conversations.chat.whole('Hi there') }
    expect(await stored(cards('mask'), call)).toEqual({
      request: '[{"role":"user","content":"Hello"}]',
      response: '[{"role":"assistant","content":"Hi there"}]',
    })
  })

  it.each(['chat', 'messages', 'responses', 'completions'] as const)(
    'are assembled from a stream of %s',
    async (api) => {
      const { request } = { request: api === 'completions' ? { model: 'm', prompt: 'Hello' } : chat('Hello') }
      const answer = conversations[api].stream(['One ', 'two ', 'three'])
      const payload = await stored(cards('mask'), { api, request, answer })
      expect(payload?.response).toContain('One two three')
    },
  )

  it.each(['mask', 'audit'] as const)('have matches of guards with action %s masked', async (action) => {
    for (const answer of [
      conversations.chat.whole(card),
      conversations.chat.stream(['41', '11 1111 1111 1111']),
    ]) {
      const payload = await stored(cards(action), { request: chat(`pay ${card}`), answer })
      expect(payload).toEqual({
        request: '[{"role":"user","content":"pay <CREDIT_CARD>"}]',
        response: '[{"role":"assistant","content":"<CREDIT_CARD>"}]',
      })
    }
  })

  it('of a rejected request have its match masked, and no response', async () => {
    expect(await stored(cards('reject'), { request: chat(`pay ${card}`) })).toEqual({
      request: '[{"role":"user","content":"pay <CREDIT_CARD>"}]',
      response: undefined,
    })
  })

  it('omit a rejected response', async () => {
    const answer = conversations.chat.whole(card)
    expect((await stored(cards('reject'), { request: chat('x'), answer }))?.response).toBeUndefined()
  })

  it('have the prompt and the response as changed by webhooks', async () => {
    const config = { request: [webhookGuard], response: [webhookGuard] }
    const answer = conversations.chat.whole('mask me')
    const payload = await stored(config, { request: chat('mask this'), answer }, { webhook: masking })
    expect(JSON.stringify(payload)).not.toContain('mask')
    expect(payload?.request).toContain('this')
  })

  it('are absent for requests that are not recorded', async () => {
    expect(await stored(cards('mask'), { request: chat('x') }, { isRecorded: false })).toBeUndefined()
  })

  it('are retained for telemetry without a ledger, with matches masked', async () => {
    const retains = { response: false, mcpContent: false, llmTexts: true }
    const answer = conversations.chat.stream(['My card: ', card])
    const exchange = await finished(
      cards('audit'),
      { request: chat(`pay ${card}`), answer },
      { maxPayloadSize: undefined, isRecorded: false, retains },
    )
    expect(exchange.payload).toBeUndefined()
    expect(exchange.facts.llmTexts).toEqual({
      prompt: [{ role: 'user', content: 'pay <CREDIT_CARD>' }],
      completion: ['My card: <CREDIT_CARD>'],
    })
  })

  it('are limited in size, also of streams that never end a text', async () => {
    const words = Array.from({ length: 2_000 }, () => 'some words ')
    const call = { request: chat('y'.repeat(20_000)), answer: conversations.chat.stream(words) }
    const payload = await stored(cards('mask'), call)
    for (const text of [payload?.request, payload?.response]) {
      expect(text?.length).toBeGreaterThan(1_000)
      expect(text?.length).toBeLessThan(1_100)
      expect(text).toContain('…')
    }
  })
})

describe('payloadText', () => {
  const searches = [compileSearch([{ builtin: 'creditCard' }, { pattern: 'SECRET-[a-z]{1,50}-END' }])]

  it('never stores the start of a match that is cut off', () => {
    const secret = `SECRET-${'a'.repeat(50)}-END`
    for (let before = 940; before < 1_010; before += 1) {
      const content = `${'.'.repeat(before)}${secret}${'.'.repeat(20_000)}`
      const text = payloadText([{ role: 'user', content }], { searches, maxBytes: 1_000 })
      expect(text).not.toContain('SECRET')
      expect(text).not.toContain('aaa')
    }
  })

  it('is bounded, valid JSON for any texts', () => {
    const texts = fc.array(
      fc.record({ role: fc.string(), content: fc.string({ maxLength: 300, unit: 'binary' }) }),
    )
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 2_000 }), (given, maxBytes) => {
        const text = payloadText(given, { searches: [], maxBytes })
        if (text === undefined) return
        const stored: { content: string }[] = JSON.parse(text)
        const size = stored.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0)
        expect(size).toBeLessThanOrEqual(maxBytes + 3)
      }),
    )
  })

  it('searches a bounded part of a text with expensive patterns', () => {
    const names = ['email', 'phoneNumber', 'creditCard', 'ssn', 'caSin'] as const
    const expensive = [compileSearch(names.map((builtin) => ({ builtin })))]
    const text = payloadText([{ role: 'user', content: '1 '.repeat(100_000) }], {
      searches: expensive,
      maxBytes: 32_768,
    })
    expect(text?.length).toBeLessThan(17_000)
  })
})
