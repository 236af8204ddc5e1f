import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { faultyUpstream } from '../support/faulty-upstream.ts'
import { startGateway } from '../support/gateway.ts'
import { aliceKey, anthropicModel, chat, llmConfig, openAiModel } from '../support/llm-config.ts'
import { anthropicKey, mockAnthropic } from '../support/mock-anthropic.ts'
import { type MockOpenAi, mockOpenAi, openAiErrors, openAiKey } from '../support/mock-openai.ts'
import { member } from '../support/mock-server.ts'
import { sharedGateway } from '../support/shared-gateway.ts'
import { eventsOf, readStream } from '../support/sse.ts'

const serving = sharedGateway()
let first: MockOpenAi
let second: MockOpenAi

beforeEach(async () => {
  first = await mockOpenAi()
  second = await mockOpenAi()
  first.behaviour.content = 'from the first'
  second.behaviour.content = 'from the second'
})

async function contentOf(response: Response): Promise<unknown> {
  const body: unknown = await response.json()
  return member(body, 'choices', 0, 'message', 'content')
}

describe('the choice of a model', () => {
  it('prefers the name with the most literal characters', async () => {
    const gateway = await serving(
      llmConfig({}, { models: [openAiModel('*', first.url), openAiModel('gpt-*', second.url)] }),
    )
    expect(await contentOf(await chat(gateway, { model: 'gpt-x' }))).toBe('from the second')
    expect(await contentOf(await chat(gateway, { model: 'other' }))).toBe('from the first')
  })

  it('looks at the headers where an entry asks for them', async () => {
    const matches = [{ headers: [{ name: 'X-Team', value: { exact: 'research' } }] }]
    const gateway = await serving(
      llmConfig({}, { models: [openAiModel('gpt', first.url, { matches }), openAiModel('gpt', second.url)] }),
    )
    const research = await chat(gateway, { model: 'gpt' }, { headers: { 'x-team': 'research' } })
    expect(await contentOf(research)).toBe('from the first')
    expect(await contentOf(await chat(gateway, { model: 'gpt' }))).toBe('from the second')
  })

  it('sends the configured model upstream, sets defaults where fields are missing, and overrides always', async () => {
    const model = {
      name: 'house',
      provider: 'openai',
      params: { baseUrl: `${first.url}/v1`, apiKey: openAiKey, model: 'gpt-real' },
      defaults: { temperature: 0.5, top_p: 0.9 },
      overrides: { store: false },
    }
    const gateway = await serving(llmConfig({}, { models: [model] }))
    await chat(gateway, { model: 'house', temperature: 0.1, store: true })
    expect(first.seen[0]?.json).toMatchObject({
      model: 'gpt-real',
      temperature: 0.1,
      top_p: 0.9,
      store: false,
    })
  })

  it('applies headers, credentials, prompts and computed fields of the provider and the model', async () => {
    const anthropic = await mockAnthropic()
    const shared = {
      name: 'claude',
      provider: 'anthropic',
      params: { hostOverride: new URL(anthropic.url).host },
      defaults: {
        auth: { key: anthropicKey },
        defaults: { '/metadata/user_id': 'none' },
        requestHeaders: { set: { 'x-workspace': 'w1' } },
        promptCaching: { minTokens: 1 },
      },
    }
    const model = {
      name: 'short',
      provider: { reference: 'claude' },
      prompts: { prepend: [{ role: 'system', content: 'Be short' }] },
      finalTransformation: { max_tokens: 'llmRequest.max_tokens + size(request.headers["x-extra"])' },
      responseHeaders: { set: { 'x-served': 'claude' }, remove: ['request-id'] },
    }
    const gateway = await serving(llmConfig({}, { providers: [shared], models: [model] }))
    const headers = { 'x-extra': 'abc' }
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      const body = { model: 'short', max_tokens: 100, stream: path === '/v1/messages' }
      const answer = await chat(gateway, body, { path, headers })
      expect([answer.status, answer.headers.get('x-served')]).toEqual([200, 'claude'])
      expect(answer.headers.get('request-id')).toBeNull()
      expect(await answer.text()).toContain('Bonjour')
    }
    const [native, translated] = anthropic.seen
    expect(native?.json).toMatchObject({ metadata: { user_id: 'none' } })
    for (const seen of [native, translated]) {
      const system = [{ type: 'text', text: 'Be short', cache_control: { type: 'ephemeral' } }]
      expect(seen?.json).toMatchObject({ max_tokens: 103, system, messages: [{ role: 'user' }] })
      expect(seen?.headers).toMatchObject({ 'x-workspace': 'w1', 'x-api-key': anthropicKey })
    }
  })

  it('reads the credential of a provider from the environment or a file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-secret-'))
    endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'key')
    writeFileSync(file, `${openAiKey}\n`)
    const baseUrl = `${first.url}/v1`
    const gateway = await startGateway(
      llmConfig(
        {},
        {
          models: [
            { name: 'from-env', provider: 'openai', params: { baseUrl, apiKey: `$\{THE_KEY}` } },
            { name: 'from-file', provider: 'openai', params: { baseUrl, apiKey: { file } } },
          ],
        },
      ),
      { env: { THE_KEY: openAiKey } },
    )
    expect((await chat(gateway, { model: 'from-env' })).status).toBe(200)
    expect((await chat(gateway, { model: 'from-file' })).status).toBe(200)
  })

  it('takes bodies of many megabytes by default', async () => {
    const gateway = await serving(llmConfig({ openai: first }))
    const content = 'word '.repeat(4 * 1024 * 1024)
    const response = await chat(gateway, { model: 'gpt-x', messages: [{ role: 'user', content }] })
    expect(response.status).toBe(200)
    expect(first.seen[0]?.text.length).toBeGreaterThan(20 * 1024 * 1024)
    const larger = await chat(gateway, {
      model: 'gpt-x',
      messages: [{ role: 'user', content: content + content }],
    })
    expect(larger.status).toBe(413)
  })

  it('takes the settings of a provider by reference', async () => {
    const gateway = await serving(
      llmConfig(
        {},
        {
          providers: [openAiModel('shared', first.url)],
          models: [{ name: 'gpt-*', provider: { reference: 'shared' } }],
        },
      ),
    )
    expect(await contentOf(await chat(gateway, { model: 'gpt-x' }))).toBe('from the first')
  })

  it('answers 404 for an unknown model and for an internal one', async () => {
    const gateway = await serving(
      llmConfig({}, { models: [openAiModel('inner', first.url, { visibility: 'internal' })] }),
    )
    for (const model of ['inner', 'nobody']) {
      const response = await chat(gateway, { model })
      expect(response.status).toBe(404)
      expect(await response.json()).toMatchObject({
        error: { message: 'Model not found', code: 'model_not_found' },
      })
    }
    expect(first.seen).toHaveLength(0)
  })

  it.each([
    ['no model', {}],
    ['a number as model', { model: 4 }],
    ['null as model', { model: null }],
  ])('answers 400 for %s', async (_, fields) => {
    const gateway = await serving(llmConfig({}))
    const response = await chat(gateway, { model: undefined, ...fields })
    expect(response.status).toBe(400)
    expect(member(await response.json(), 'error', 'code')).toBe('missing_model')
  })

  it('serves the paths of the API behind any prefix and nothing else', async () => {
    const gateway = await serving(llmConfig({ openai: first }))
    const model = { model: 'gpt-x' }
    for (const path of [
      '/team-a/v1/chat/completions',
      '//v1//chat/completions/',
      '/a/../v1/chat/%63ompletions',
    ]) {
      expect([path, (await chat(gateway, model, { path })).status]).toEqual([path, 200])
    }
    first.seen.length = 0
    for (const path of [
      '/v1/videos',
      '/v1/chat/completions/x',
      '/',
      '/v1/fine_tuning/jobs',
      '/v1/chat/completionsx',
    ]) {
      const response = await chat(gateway, model, { path })
      expect([path, response.status]).toEqual([path, 404])
    }
    expect(first.seen).toHaveLength(0)
  })

  it('forwards unknown paths only where passthrough is on', async () => {
    const gateway = await serving(llmConfig({ openai: first }, { passthrough: true }))
    await chat(gateway, { model: 'gpt-x' }, { path: '/v1/moderations' })
    expect(first.seen[0]?.path).toBe('/v1/moderations')
    expect(JSON.stringify(first.seen[0])).not.toContain(aliceKey)
  })
})

describe('virtual models', () => {
  it('failover goes on to the next target within the request on 5xx, 429 and a refused connection', async () => {
    const dead = await faultyUpstream('refuses')
    const gateway = await serving(
      llmConfig(
        {},
        {
          models: [
            openAiModel('dead', dead.url),
            openAiModel('one', first.url),
            openAiModel('two', second.url),
          ],
          virtualModels: [
            {
              name: 'sure',
              routing: {
                failover: {
                  targets: [
                    { model: 'dead', priority: 0 },
                    { model: 'one', priority: 1 },
                    { model: 'two', priority: 2 },
                  ],
                },
              },
            },
          ],
        },
      ),
    )
    expect(await contentOf(await chat(gateway, { model: 'sure' }))).toBe('from the first')
    first.next(openAiErrors.failed)
    expect(await contentOf(await chat(gateway, { model: 'sure' }))).toBe('from the second')
    expect(member(second.seen[0]?.json, 'model')).toBe('two')
  })

  it('failover also moves a stream on before its first byte, across formats', async () => {
    const anthropic = await mockAnthropic()
    const gateway = await serving(
      llmConfig(
        {},
        {
          models: [openAiModel('one', first.url), anthropicModel('claude', anthropic.url)],
          virtualModels: [
            {
              name: 'sure',
              routing: {
                failover: {
                  targets: [
                    { model: 'one', priority: 0 },
                    { model: 'claude', priority: 1 },
                  ],
                },
              },
            },
          ],
        },
      ),
    )
    first.next(openAiErrors.rateLimited)
    const { text } = await readStream(await chat(gateway, { model: 'sure', stream: true }))
    const contents = eventsOf(text)
      .filter(({ data }) => data !== '[DONE]')
      .map(({ data }) => member(JSON.parse(data), 'choices', 0, 'delta', 'content') ?? '')
    expect(contents.join('')).toBe(anthropic.behaviour.content)
    expect(first.seen).toHaveLength(1)
  })

  it('failover passes the last error on when every target fails', async () => {
    const routing = {
      failover: {
        targets: [
          { model: 'one', priority: 0 },
          { model: 'two', priority: 1 },
        ],
      },
    }
    const gateway = await serving(
      llmConfig(
        {},
        {
          models: [openAiModel('one', first.url), openAiModel('two', second.url)],
          virtualModels: [{ name: 'sure', routing }],
        },
      ),
    )
    first.next(openAiErrors.failed)
    second.next(openAiErrors.rateLimited)
    const response = await chat(gateway, { model: 'sure' })
    expect(response.status).toBe(429)
    expect(member(await response.json(), 'error', 'code')).toBe('rate_limit_exceeded')
  })

  it('failover does not repeat a request that the provider refused as wrong', async () => {
    const routing = {
      failover: {
        targets: [
          { model: 'one', priority: 0 },
          { model: 'two', priority: 1 },
        ],
      },
    }
    const gateway = await serving(
      llmConfig(
        {},
        {
          models: [openAiModel('one', first.url), openAiModel('two', second.url)],
          virtualModels: [{ name: 'sure', routing }],
        },
      ),
    )
    first.next(openAiErrors.contextLength)
    expect((await chat(gateway, { model: 'sure' })).status).toBe(400)
    expect(second.seen).toHaveLength(0)
  })

  it('weighted splits by weight and reaches internal models', async () => {
    const routing = {
      weighted: {
        targets: [
          { model: 'one', weight: 0 },
          { model: 'two', weight: 5 },
        ],
      },
    }
    const gateway = await serving(
      llmConfig(
        {},
        {
          models: [
            openAiModel('one', first.url, { visibility: 'internal' }),
            openAiModel('two', second.url, { visibility: 'internal' }),
          ],
          virtualModels: [{ name: 'split', routing }],
        },
      ),
    )
    for (let index = 0; index < 5; index++) {
      expect(await contentOf(await chat(gateway, { model: 'split' }))).toBe('from the second')
    }
  })

  it('conditional takes the first target whose condition is true', async () => {
    const targets = [
      { when: 'has(llmRequest.tools) && size(llmRequest.tools) > 0', model: 'one' },
      { model: 'two' },
    ]
    const gateway = await serving(
      llmConfig(
        {},
        {
          models: [openAiModel('one', first.url), openAiModel('two', second.url)],
          virtualModels: [{ name: 'choose', routing: { conditional: { targets } } }],
        },
      ),
    )
    expect(await contentOf(await chat(gateway, { model: 'choose' }))).toBe('from the second')
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]
    await chat(gateway, { model: 'choose', tools })
    expect(first.seen).toHaveLength(1)
  })
})
