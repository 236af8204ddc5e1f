import { describe, expect, it } from 'vitest'
import {
  bodyOf,
  call,
  chatBody,
  completion,
  type FixtureCall,
  fixtureGateway,
  fixtureLlm,
  jsonReply,
} from '../../../../test/fixtures/llm.ts'
import type { LlmPolicyConfig } from '../config/backend-config.ts'
import type { ModelConfig } from '../config/config.ts'
import { compileLlmBackend } from '../llm-backend.ts'

const message = { type: 'message', role: 'assistant', content: [{ type: 'text', text: 'hi' }], usage: {} }

async function sentFor(model: Partial<ModelConfig>, request: FixtureCall = { body: chatBody }) {
  const gateway = fixtureGateway({ models: [{ name: '*', provider: 'openai', ...model }] }, ({ path }) =>
    jsonReply(path.endsWith('/messages') ? message : completion('hi')),
  )
  const { status } = await call(gateway, request)
  expect(status).toBe(200)
  return gateway.sent[0]
}

async function sentByBackend(
  ai: LlmPolicyConfig,
  own: LlmPolicyConfig,
  request: FixtureCall = { body: chatBody },
) {
  const gateway = fixtureLlm(
    (context) =>
      compileLlmBackend({ provider: { openAI: {} }, policies: { ai: own } }, context, {
        place: 'a',
        policies: [ai],
        maxBufferSize: 1_000_000,
      }),
    () => jsonReply(completion('hi')),
  )
  await call(gateway, request)
  return bodyOf(gateway.sent[0])
}

const prompts = {
  prepend: [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'U' },
  ],
  append: [{ role: 'system', content: 'T' }],
}
const [system, user] = prompts.prepend
const [tail] = prompts.append
const asked = { role: 'user', content: 'hello' }

describe('prompts', () => {
  it('surround chat messages, and leave other bytes', async () => {
    const body =
      '{ "seed":12345678901234567890, "messages":[{"role":"user","content":"hello"}], "model":"m" }'
    const sent = await sentFor({ prompts }, { body })
    expect(String(sent?.body)).toBe(
      `{ "seed":12345678901234567890, "messages":${JSON.stringify([system, user, asked, tail])}, "model":"m" }`,
    )
  })

  it('become parts of system in messages', async () => {
    const body = { model: 'm', max_tokens: 9, system: 'own', messages: [asked] }
    const sent = await sentFor({ provider: 'anthropic', prompts }, { path: '/v1/messages', body })
    expect(bodyOf(sent)).toEqual({
      ...body,
      system: ['S', 'own', 'T'].map((text) => ({ type: 'text', text })),
      messages: [user, asked],
    })
  })

  it('are translated with the request', async () => {
    const sent = await sentFor(
      { provider: 'anthropic', prompts },
      { body: { model: 'm', messages: [asked] } },
    )
    expect(JSON.stringify(bodyOf(sent))).toMatch(/"system":.*S.*T/)
  })

  it('surround the input of responses', async () => {
    const sent = await sentFor({ prompts }, { path: '/v1/responses', body: { model: 'm', input: 'hello' } })
    expect(bodyOf(sent)).toEqual({ model: 'm', input: [system, user, asked, tail] })
  })

  it('leave completions and embeddings', async () => {
    const body = { model: 'm', input: 'hello' }
    expect(bodyOf(await sentFor({ prompts }, { path: '/v1/embeddings', body }))).toEqual(body)
  })

  it('apply to large bodies', async () => {
    const big = { role: 'user', content: 'x'.repeat(400_000) }
    const sent = await sentFor({ prompts, promptCaching: {} }, { body: { model: 'm', messages: [big] } })
    expect(bodyOf(sent)).toEqual({ model: 'm', messages: [system, user, big, tail] })
  })
})

describe('fields by path', () => {
  it('are set in objects of the client', async () => {
    const fields = {
      defaults: { '/metadata/a': 1, '/metadata/b': 2, '/options/x': true },
      overrides: { '/metadata/c': 3 },
    }
    const sent = await sentFor(fields, { body: { ...chatBody, metadata: { a: 9, c: 9 } } })
    expect(bodyOf(sent)).toEqual({ ...chatBody, metadata: { a: 9, b: 2, c: 3 }, options: { x: true } })
  })
})

describe('promptCaching', () => {
  it('marks translated requests', async () => {
    const turns = [asked, { role: 'assistant', content: 'hi' }, asked]
    const sent = await sentFor(
      { provider: 'anthropic', promptCaching: {} },
      { body: { model: 'm', messages: turns } },
    )
    expect(JSON.stringify(bodyOf(sent)).match(/cache_control/g)).toHaveLength(1)
  })
})

describe('finalTransformation', () => {
  it('computes fields of the translated body', async () => {
    const sent = await sentFor(
      {
        provider: 'anthropic',
        finalTransformation: {
          max_tokens: 'llmRequest.max_tokens + 1',
          metadata: '{"user_id": request.headers["x-user"]}',
          temperature: 'llmRequest.missing',
        },
      },
      {
        body: { model: 'm', messages: [asked], max_tokens: 9, temperature: 1 },
        headers: { 'x-user': 'ann' },
      },
    )
    expect(bodyOf(sent)).toMatchObject({ max_tokens: 10, metadata: { user_id: 'ann' } })
    expect(bodyOf(sent)).not.toHaveProperty('temperature')
  })

  it('sees the results of all other changes', async () => {
    const sent = await sentFor({
      params: { model: 'big' },
      overrides: { seed: 7 },
      prompts: { prepend: [asked] },
      finalTransformation: {
        user: '[llmRequest.model, string(llmRequest.seed), string(size(llmRequest.messages))].join("/")',
      },
    })
    expect(bodyOf(sent)).toMatchObject({ user: `big/7/${chatBody.messages.length + 1}` })
  })

  it('preserves large numbers', async () => {
    const body = '{"model":"m","messages":[],"seed":12345678901234567890}'
    const sent = await sentFor({ finalTransformation: { user: '"u"' } }, { body })
    expect(String(sent?.body)).toBe('{"model":"m","messages":[],"seed":12345678901234567890,"user":"u"}')
  })
})

describe('policies.ai', () => {
  it('computes fields, the most specific expression of a field applies', async () => {
    const sent = await sentByBackend(
      { transformations: { user: '"route"', seed: '1' }, finalTransformations: { top_p: '0.5' } },
      { transformations: { user: '"backend"' } },
    )
    expect(sent).toMatchObject({ user: 'backend', seed: 1, top_p: 0.5 })
  })

  it('applies aliases to computed models', async () => {
    const policy = {
      transformations: { model: 'llmRequest.model.stripPrefix("x/")' },
      modelAliases: { fast: 'gpt-4o-mini' },
    }
    const sent = await sentByBackend(policy, {}, { body: { ...chatBody, model: 'x/fast' } })
    expect(sent).toMatchObject({ model: 'gpt-4o-mini' })
  })

  it('adds prompts', async () => {
    const sent = await sentByBackend({ prompts: { append: [asked] } }, {})
    expect(sent).toEqual({ ...chatBody, messages: [...chatBody.messages, asked] })
  })
})
