import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, aliceRecord, chat, llmConfig } from '../support/llm-config.ts'
import { type MockOpenAi, mockOpenAi } from '../support/mock-openai.ts'
import { member } from '../support/mock-server.ts'

const bobKey = 'tg-canary-bob-91d0'
const carolKey = 'tg-canary-carol-55e2'

const bobHash = createHash('sha256').update(bobKey).digest('hex').toUpperCase()

const keys = [
  aliceRecord,
  {
    keyHash: `sha256:${bobHash}`,
    metadata: { id: 'key-bob', group: 'research' },
  },
  { key: carolKey, metadata: { id: 'key-carol' }, allowedModels: ['echo', 'gpt-mini*'] },
]

let openai: MockOpenAi

beforeAll(async () => {
  openai = await mockOpenAi({ lifetime: 'file' })
})

function configured(apiKey: object) {
  return llmConfig({ openai }, { policies: { apiKey } })
}

describe('strict mode', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway(configured({ keys }), { lifetime: 'file' })
  })

  it('is the default and admits a known key', async () => {
    expect((await chat(gateway)).status).toBe(200)
  })

  it('admits a key that is stored as a hash only, in any case of its digits', async () => {
    expect((await chat(gateway, {}, { headers: { authorization: `Bearer ${bobKey}` } })).status).toBe(200)
  })

  it.each([['bearer'], ['BEARER'], ['Bearer']])('reads the scheme %s in any case', async (scheme) => {
    expect((await chat(gateway, {}, { headers: { authorization: `${scheme} ${aliceKey}` } })).status).toBe(
      200,
    )
  })

  it('reads x-api-key as well', async () => {
    const headers = { authorization: '', 'x-api-key': aliceKey }
    expect((await chat(gateway, {}, { headers })).status).toBe(200)
  })

  it.each([
    ['an unknown key', 'Bearer tg-nobody'],
    ['a known key with more behind it', `Bearer ${aliceKey}x`],
    ['a known key cut short', `Bearer ${aliceKey.slice(0, -1)}`],
    ['the hash of a key in place of the key', `Bearer sha256:${bobHash}`],
  ])('refuses %s', async (_, authorization) => {
    const response = await chat(gateway, {}, { headers: { authorization } })
    expect(response.status).toBe(401)
    expect(response.headers.get('content-type')).toContain('application/json')
    const body: unknown = await response.json()
    expect(member(body, 'error', 'message')).toBe('api key authentication failure: invalid credentials')
  })

  it.each([
    ['no header', ''],
    ['another scheme', `Basic ${Buffer.from(`x:${aliceKey}`).toString('base64')}`],
  ])('reports that no key was found with %s', async (_, authorization) => {
    const response = await chat(gateway, {}, { headers: { authorization } })
    expect(response.status).toBe(401)
    expect(member(await response.json(), 'error', 'message')).toBe(
      'api key authentication failure: no API Key found',
    )
  })

  it('answers in the shape of the messages API on its path', async () => {
    const response = await chat(
      gateway,
      {},
      { path: '/v1/messages', headers: { authorization: 'Bearer no' } },
    )
    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
  })

  it('refuses before it reads the body', async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body: 'no JSON' })
    expect(response.status).toBe(401)
  })

  it('sends neither header of the client on, not even a second credential beside a valid key', async () => {
    openai.seen.length = 0
    const headers = { 'x-api-key': 'tg-second-credential' }
    await chat(gateway, { model: 'gpt-test' }, { headers })
    expect(openai.seen.length).toBeLessThanOrEqual(1)
    expect(JSON.stringify(openai.seen)).not.toContain('tg-second-credential')
    expect(JSON.stringify(openai.seen)).not.toContain(aliceKey)
  })

  it('lets a key use only its allowed models', async () => {
    const headers = { authorization: `Bearer ${carolKey}` }
    expect((await chat(gateway, { model: 'echo' }, { headers })).status).toBe(200)
    expect((await chat(gateway, { model: 'gpt-mini-2' }, { headers })).status).toBe(200)
    const refused = await chat(gateway, { model: 'gpt-large' }, { headers })
    expect(refused.status).toBe(403)
    expect(await refused.json()).toMatchObject({
      error: { message: 'Model is not allowed for this API key', code: 'model_not_allowed' },
    })
  })

  it('lists only the models a key may use', async () => {
    const list = async (key: string) => {
      const response = await fetch(`${gateway.url}/v1/models`, {
        headers: { authorization: `Bearer ${key}` },
      })
      const body: unknown = await response.json()
      const data = member(body, 'data')
      return Array.isArray(data) ? data.map((model) => member(model, 'id')) : []
    }
    expect(await list(aliceKey)).toContain('gpt-*')
    const carols = await list(carolKey)
    expect(carols).toContain('echo')
    expect(carols).not.toContain('text-embedding-*')
  })

  it('protects the list of models too', async () => {
    expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(401)
  })
})

describe('other modes and places', () => {
  it('optional admits requests without a key and refuses unknown keys', async () => {
    const gateway = await startGateway(configured({ mode: 'optional', keys }))
    expect((await chat(gateway, {}, { headers: { authorization: '' } })).status).toBe(200)
    expect((await chat(gateway, {}, { headers: { authorization: 'Bearer tg-nobody' } })).status).toBe(401)
  })

  it('permissive admits unknown keys as well', async () => {
    const gateway = await startGateway(configured({ mode: 'permissive', keys }))
    expect((await chat(gateway, {}, { headers: { authorization: 'Bearer tg-nobody' } })).status).toBe(200)
    expect((await chat(gateway, {}, { headers: { authorization: '' } })).status).toBe(200)
  })

  it('reads the key from the configured header only', async () => {
    const location = { header: { name: 'x-gateway-key', prefix: '' } }
    const gateway = await startGateway(configured({ keys, location }))
    const elsewhere = await chat(gateway, {}, { headers: { authorization: '', 'x-gateway-key': aliceKey } })
    expect(elsewhere.status).toBe(200)
    expect((await chat(gateway)).status).toBe(401)
  })

  it('a reload revokes a key at once and admits a new one', async () => {
    const gateway = await startGateway(configured({ keys: [aliceRecord] }))
    const daveKey = 'tg-canary-dave-0b1f'
    expect((await chat(gateway)).status).toBe(200)
    await gateway.reload(configured({ keys: [{ key: daveKey, metadata: { id: 'key-dave' } }] }))
    expect((await chat(gateway)).status).toBe(401)
    expect((await chat(gateway, {}, { headers: { authorization: `Bearer ${daveKey}` } })).status).toBe(200)
  })
})
