import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { apis, conversations } from '../../../test/fixtures/guardrail-streams.ts'
import {
  acts,
  type FixtureWebhook,
  fixtureGuards,
  jsonReply,
  masking,
  pass,
  sentTo,
  webhookGuard,
} from '../../../test/fixtures/guardrails.ts'
import { createCancellation } from '../../lib/cancellation.ts'
import { GatewayError } from '../../lib/gateway-error.ts'
import type { BodySource } from '../../net/http/body.ts'
import type { Reply } from '../../net/http-client/send.ts'
import type { ConversationApi } from '../../pipeline/llm-message.ts'
import type { GuardrailsConfig } from './config.ts'
import type { Phase } from './guard.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

type Expected = 'allow' | 'modify' | 'reject' | 'failure'

const elements = (phase: Phase, messages: unknown) =>
  phase === 'request'
    ? { messages }
    : { choices: Array.isArray(messages) ? messages.map((message) => ({ message })) : messages }
const other = (phase: Phase): Phase => (phase === 'request' ? 'response' : 'request')
const message = (content: unknown, more: object = {}) => ({ role: 'user', content, ...more })
const changed = 'Say **** now'

/** What a webhook may answer, well-formed or not, and what it has to be taken for. */
const answers: [name: string, expected: Expected, answer: (phase: Phase) => unknown][] = [
  ['an empty action', 'allow', () => ({ action: {} })],
  ['a reason', 'allow', () => ({ action: { reason: 'fine' } })],
  ['no reason', 'allow', () => ({ action: { reason: null } })],
  ['more beside the action', 'allow', () => ({ action: {}, version: 2 })],
  [
    'new content',
    'modify',
    (phase) => ({ action: { body: elements(phase, [message(changed)]), reason: null } }),
  ],
  [
    'new content without reason',
    'modify',
    (phase) => ({ action: { body: elements(phase, [message(changed)]) } }),
  ],
  ['a rejection', 'reject', () => ({ action: { body: 'no', status_code: 418, reason: 'x' } })],
  ['a rejection without status', 'failure', () => ({ action: { body: 'no' } })],
  ['a rejection with a text as status', 'failure', () => ({ action: { body: 'no', status_code: '403' } })],
  ['a rejection with status 42', 'failure', () => ({ action: { body: 'no', status_code: 42 } })],
  ['a rejection with status 101', 'failure', () => ({ action: { body: 'no', status_code: 101 } })],
  ['a rejection with status 600', 'failure', () => ({ action: { body: 'no', status_code: 600 } })],
  ['a rejection with status 403.5', 'failure', () => ({ action: { body: 'no', status_code: 403.5 } })],
  ['a rejection with a negative status', 'failure', () => ({ action: { body: 'no', status_code: -403 } })],
  ['a status without body', 'failure', () => ({ action: { status_code: 403 } })],
  ['a body of null', 'failure', () => ({ action: { body: null, status_code: 403 } })],
  ['an empty body', 'failure', () => ({ action: { body: {} } })],
  ['a list as body', 'failure', () => ({ action: { body: [] } })],
  [
    'content of the other phase',
    'failure',
    (phase) => ({ action: { body: elements(other(phase), [message(changed)]) } }),
  ],
  [
    'content of both phases',
    'failure',
    (phase) => ({
      action: { body: { ...elements(phase, [message(changed)]), ...elements(other(phase), []) } },
    }),
  ],
  ['no text for one', 'failure', (phase) => ({ action: { body: elements(phase, []) } })],
  [
    'two texts for one',
    'failure',
    (phase) => ({ action: { body: elements(phase, [message('a'), message('b')]) } }),
  ],
  [
    'content that is no list',
    'failure',
    (phase) => ({ action: { body: elements(phase, { 0: message('a') }) } }),
  ],
  [
    'a message with a name',
    'failure',
    (phase) => ({ action: { body: elements(phase, [message('a', { name: 'x' })]) } }),
  ],
  ['content of null', 'failure', (phase) => ({ action: { body: elements(phase, [message(null)]) } })],
  [
    'a message without role',
    'failure',
    (phase) => ({ action: { body: elements(phase, [{ content: 'a' }]) } }),
  ],
  [
    'new content with a status',
    'failure',
    (phase) => ({
      action: { body: elements(phase, [message(changed)]), status_code: 403 },
    }),
  ],
  ['a type', 'failure', () => ({ action: { type: 'reject' } })],
  ['blocked', 'failure', () => ({ action: { blocked: true } })],
  ['a reason that is a number', 'failure', () => ({ action: { reason: 7 } })],
  ['an action of null', 'failure', () => ({ action: null })],
  ['an action that is a text', 'failure', () => ({ action: 'pass' })],
  ['an action that is a list', 'failure', () => ({ action: [] })],
  ['no action', 'failure', () => ({})],
  ['a list', 'failure', () => []],
  ['an action twice', 'failure', () => '{"action":{"body":"no","status_code":403},"action":{}}'],
  ['text', 'failure', () => 'ok'],
  ['nothing', 'failure', () => ''],
  ['half an answer', 'failure', () => '{"action":{}'],
  ['more than is read', 'failure', () => `{"action":{"reason":"${'x'.repeat(3 * 1024 * 1024)}"}}`],
]

/** Ways in which no answer comes at all. */
const silence: [name: string, webhook: FixtureWebhook][] = [
  ['refuses the connection', () => Promise.reject(new GatewayError('upstream_connect', 'refused'))],
  ['resets the connection', () => Promise.reject(new GatewayError('upstream_reset', 'reset'))],
  ['never answers', () => new Promise(() => {})],
  ['never ends its answer', () => bodyOf(() => {})],
  ['drips', () => bodyOf((sink) => setInterval(() => sink.write(Buffer.from(' ')), 500))],
  ['breaks its answer off', () => bodyOf((sink) => sink.fail(new GatewayError('upstream_reset', 'reset')))],
  [
    'answers in another encoding',
    () => ({ ...jsonReply({ action: {} }), headers: { 'content-encoding': 'gzip' } }),
  ],
  [
    'throws',
    () => {
      throw new Error('a defect')
    },
  ],
]

function bodyOf(flow: (sink: Parameters<BodySource['start']>[0]) => void): Reply {
  return { status: 200, headers: {}, body: { start: flow, resume() {}, cancel() {} } }
}

const words = ['Say', ' ma', 'sk', ' now']
const original = words.join('')
const failedBody = (phase: Phase) => `failed to process LLM ${phase}: prompt guard failed`

const settings = (['failClosed', 'failOpen'] as const).flatMap((failureMode) =>
  (['reject', 'audit'] as const).flatMap((action) =>
    (['request', 'response'] as const).flatMap((phase) =>
      (['whole', 'buffered', 'windowed'] as const).map((form) => ({ failureMode, action, phase, form })),
    ),
  ),
)

type Setting = (typeof settings)[number]

async function outcomeOf(
  api: ConversationApi,
  { failureMode, action, phase, form }: Setting,
  webhook: FixtureWebhook,
) {
  const config: GuardrailsConfig = {
    [phase]: [{ webhook: { target: { host: 'guard.test:8000' }, failureMode, action } }],
    ...(form !== 'whole' && { streaming: form }),
  }
  const { request, whole, stream } = conversations[api]
  const guards = fixtureGuards(config, webhook)
  const passing = pass(guards, {
    api,
    request: request(original),
    answer: form === 'whole' ? whole(original) : stream(words),
  })
  await vi.advanceTimersByTimeAsync(10_000)
  return { ...(await passing), calls: guards.calls }
}

async function expectOutcome(
  api: ConversationApi,
  setting: Setting,
  webhook: FixtureWebhook,
  expected: Expected,
) {
  const { phase, form, action, failureMode } = setting
  const { request, whole, stream, read, end } = conversations[api]
  const outcome = await outcomeOf(api, setting, webhook)
  const unchanged = {
    asked: JSON.stringify(request(original)),
    text: form === 'whole' ? whole(original) : stream(words).join(''),
  }
  const fails = expected === 'failure' && failureMode === 'failClosed'
  if (fails && phase === 'response' && action === 'audit' && form !== 'whole') {
    // What is only noted is not withheld; but it does not end as if all were well.
    expect(outcome.status).toBe(200)
    expect(outcome.text).not.toContain(end)
    expect(outcome.text).toContain(failedBody(phase))
    return
  }
  if (fails || (expected === 'reject' && action === 'reject')) {
    expect(outcome.status).toBe(fails ? 503 : 418)
    expect(outcome.text).toBe(fails ? failedBody(phase) : 'no')
    expect(outcome.asked).toBe(phase === 'request' ? undefined : unchanged.asked)
    expect(outcome.exchange.log.refusedBy).toBe(`guardrail: llm ${phase} webhook 1`)
    return
  }
  expect(outcome.status).toBe(200)
  const changes = expected === 'modify' && action === 'reject'
  expect(outcome.asked).toBe(
    changes && phase === 'request' ? JSON.stringify(request(changed)) : unchanged.asked,
  )
  if (!changes || phase === 'request') expect(outcome.text).toBe(unchanged.text)
  else if (form === 'whole') expect(outcome.text).toBe(whole(changed))
  else {
    expect(read(outcome.text)).toBe(changed)
    expect(outcome.text).not.toContain('mask')
    expect(outcome.text).toContain(end)
  }
}

describe.each(apis)('a webhook guard of %s', (api) => {
  it.each(answers)('takes %s for: %s', async (_, expected, answer) => {
    for (const setting of settings) {
      await expectOutcome(api, setting, () => jsonReply(answer(setting.phase)), expected)
    }
  })

  it.each(silence)('takes a server that %s for a failure', async (_, webhook) => {
    for (const setting of settings) await expectOutcome(api, setting, webhook, 'failure')
  })

  it('applies a response of any status', async () => {
    for (const setting of settings) {
      await expectOutcome(
        api,
        setting,
        () => jsonReply({ action: { body: 'no', status_code: 418 } }, 500),
        'reject',
      )
      await expectOutcome(api, setting, () => jsonReply({ action: {} }, 404), 'allow')
    }
  })

  it('allows nothing without an explicit verdict', async () => {
    const anything = fc.oneof(
      fc.jsonValue(),
      fc.record({ action: fc.jsonValue() }),
      fc.record({
        action: fc.record(
          {
            body: fc.oneof(
              fc.string(),
              fc.jsonValue(),
              fc.record({ choices: fc.array(fc.record({ message: fc.jsonValue() })) }),
              fc.record({ choices: fc.constant([{ message: { role: 'assistant', content: changed } }]) }),
            ),
            status_code: fc.oneof(fc.integer(), fc.jsonValue()),
            reason: fc.oneof(fc.string(), fc.jsonValue()),
          },
          { requiredKeys: [] },
        ),
      }),
    )
    const setting: Setting = {
      failureMode: 'failClosed',
      action: 'reject',
      phase: 'response',
      form: 'buffered',
    }
    await fc.assert(
      fc.asyncProperty(anything, async (body) => {
        const { status, text } = await outcomeOf(api, setting, () => jsonReply(body))
        const action = typeof body === 'object' && body !== null && 'action' in body ? body.action : undefined
        const allows =
          typeof action === 'object' &&
          action !== null &&
          !Array.isArray(action) &&
          !('body' in action) &&
          !('status_code' in action) &&
          ('reason' in action
            ? typeof action.reason === 'string' ||
              (action.reason === null && Object.keys(action).length === 1)
            : Object.keys(action).length === 0)
        if (!allows) expect(status === 200 && text.includes('sk')).toBe(false)
      }),
      { numRuns: 100 },
    )
  })
})

describe('guards', () => {
  it('run in order on the content of earlier ones until one rejects', async () => {
    const seen: unknown[] = []
    const guards = fixtureGuards(
      { request: [webhookGuard, { regex: { rules: [{ pattern: 'Say' }] } }, webhookGuard, webhookGuard] },
      (request) => {
        seen.push(sentTo(request))
        return seen.length === 1 ? masking(request) : acts({ body: 'no', status_code: 400 })(request)
      },
    )
    const { status, asked } = await pass(guards)
    expect(status).toBe(400)
    expect(asked).toBeUndefined()
    expect(seen).toEqual([
      { body: { messages: [{ role: 'user', content: 'Say mask' }] } },
      { body: { messages: [{ role: 'user', content: '<masked> ****' }] } },
    ])
  })

  it('of the place come before those of the model', async () => {
    const ofModel: GuardrailsConfig = {
      request: [{ regex: { rules: [{ pattern: '<masked>' }], action: 'reject' } }],
    }
    const guards = fixtureGuards({ request: [{ regex: { rules: [{ pattern: 'mask' }] } }] }, acts({}), {
      ofModels: [{ scope: 'model m', config: ofModel }],
    })
    expect((await pass(guards, { guardrailsOfModels: [ofModel] })).status).toBe(403)
    expect((await pass(guards, { guardrailsOfModels: [] })).asked).toContain('Say <masked>')
  })

  it('fill in the text of a webhook that rejects without one', async () => {
    const rejection = { status: 451, body: 'not here', headers: { set: { 'x-why': 'policy' } } }
    const statuses = ['', 'mine'].map(async (body) => {
      const guards = fixtureGuards(
        { request: [{ rejection, ...webhookGuard }] },
        acts({ body, status_code: 422 }),
      )
      const { status, text, headers } = await pass(guards)
      return { status, text, why: headers['x-why'] }
    })
    expect(await Promise.all(statuses)).toEqual([
      { status: 422, text: 'not here', why: 'policy' },
      { status: 422, text: 'mine', why: 'policy' },
    ])
  })

  it('answer with the rejection they are configured with', async () => {
    const rejection = { status: 451, body: 'not here', headers: { set: { 'x-why': 'policy' } } }
    const guards = fixtureGuards(
      { request: [{ rejection, regex: { action: 'reject', rules: [{ pattern: 'mask' }] } }] },
      acts({}),
    )
    expect(await pass(guards)).toMatchObject({
      status: 451,
      text: 'not here',
      headers: { 'x-why': 'policy' },
    })
  })

  it('count every check by outcome', async () => {
    const guards = fixtureGuards(
      { request: [{ name: 'a', ...webhookGuard }], response: [{ name: 'b', ...webhookGuard }] },
      masking,
    )
    await pass(guards)
    expect([...guards.context.decisions]).toEqual([
      ['a request mask', 1],
      ['b response mask', 1],
    ])
  })

  it('are not asked about streamed answers where that is disabled, which is counted', async () => {
    const guards = fixtureGuards(
      { response: [{ name: 'b', ...webhookGuard }], streaming: 'Disabled' },
      masking,
    )
    const { text } = await pass(guards, { answer: conversations.chat.stream(words) })
    expect(text).toBe(conversations.chat.stream(words).join(''))
    expect([...guards.context.decisions]).toEqual([['b response skipped', 1]])
    expect((await pass(guards, { answer: conversations.chat.whole('mask') })).text).toContain('****')
  })

  it('take the strictest way with streams of several places', async () => {
    const ofModel: GuardrailsConfig = { streaming: 'disabled', response: [] }
    const guards = fixtureGuards({ response: [webhookGuard], streaming: 'windowed' }, masking, {
      ofModels: [{ scope: 'model m', config: ofModel }],
    })
    await pass(guards, { answer: conversations.chat.stream(words), guardrailsOfModels: [ofModel] })
    expect(guards.calls).toHaveLength(1)
  })

  it('check streamed responses of a scope without a mode, regardless of other scopes', async () => {
    const ofModel: GuardrailsConfig = { streaming: 'disabled', response: [webhookGuard] }
    const guards = fixtureGuards({ response: [webhookGuard] }, masking, {
      ofModels: [{ scope: 'model m', config: ofModel }],
    })
    const call = { answer: conversations.chat.stream(words), guardrailsOfModels: [ofModel] }
    expect((await pass(guards, call)).text).not.toContain('mask')
    expect(guards.calls).toHaveLength(2)
  })

  it('are asked no more when the client has left', async () => {
    const cancellation = createCancellation()
    const guards = fixtureGuards({ request: [webhookGuard, webhookGuard] }, () => new Promise(() => {}))
    const passing = pass(guards, { cancellation })
    await vi.advanceTimersByTimeAsync(1)
    cancellation.cancel()
    expect((await passing).asked).toBeUndefined()
    expect(guards.calls).toHaveLength(1)
    expect(guards.calls[0]?.cancellation?.cancelled).toBe(true)
    expect([...guards.context.decisions]).toEqual([['llm request webhook 1 request cancelled', 1]])
  })

  it('fail on prompts of token numbers', async () => {
    const guards = fixtureGuards({ request: [webhookGuard] }, acts({}))
    const outcome = await pass(guards, { api: 'completions', request: { model: 'm', prompt: [1, 2, 3] } })
    expect(outcome.status).toBe(503)
    expect(guards.calls).toHaveLength(0)
  })

  it('have to answer in time, each for itself', async () => {
    const slow: FixtureWebhook = () =>
      new Promise((resolve) => setTimeout(() => resolve(jsonReply({ action: {} })), 9_000))
    const passing = pass(fixtureGuards({ request: [webhookGuard, webhookGuard] }, slow))
    await vi.advanceTimersByTimeAsync(18_000)
    expect((await passing).status).toBe(200)
  })
})
