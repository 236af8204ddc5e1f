import { describe, expect, it } from 'vitest'
import {
  type Answer,
  loadFixture,
  type ReplicaOptions,
  startFileMode,
} from '../../../test/fixtures/resources.ts'
import { namedId } from '../change/identity.ts'

const config = `# Models of the team.
llm:
  models:
    - name: first # the default
      provider: echo
    # Costs more.
    - name: second
      provider: openai
      params:
        apiKey: \${PROVIDER_KEY}

  policies:
    apiKey:
      mode: strict
      keys: []   # filled by the API
`

const env = { PROVIDER_KEY: 'sk-1' }
const start = (text = config, options: ReplicaOptions & { mode?: 'file' | 'readOnly' } = {}) =>
  startFileMode(text, { env, ...options })

type Envelope = { kind: string; id: string; value: Record<string, unknown> }

function first(answer: Answer): Envelope {
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const [envelope] = (answer.body as { resources: Envelope[] }).resources
  if (envelope === undefined) throw new Error('nothing was stored')
  return envelope
}

const one = (value: unknown) => ({ resources: [{ value }] })

describe('a virtual key', () => {
  it('is stored in the file and identified by its id in metadata', async () => {
    const replica = await start()
    const created = first(
      await replica.call('PUT', '/llm.apiKey?reveal=true', one({ key: 'a$b', metadata: { name: 'ada' } })),
    )
    expect(Object.keys(created).sort()).toEqual(['id', 'kind', 'value'])
    expect(created.value).toEqual({ key: 'a$b', metadata: { name: 'ada', id: created.id } })
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([created.value])
    expect(replica.file.text).toContain('# filled by the API')
    expect(replica.file.text).toContain(`apiKey: \${PROVIDER_KEY}`)
    expect((await replica.call('GET', '/llm.apiKey')).body).toEqual({ resources: [] })

    const at = `/llm.apiKey/${created.id}`
    const updated = first(await replica.call('PUT', `${at}?reveal=true`, { value: { key: 'c' } }))
    expect(updated).toEqual({ ...created, value: { key: 'c', metadata: { id: created.id } } })
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([updated.value])
    expect((await replica.call('DELETE', at)).status).toBe(200)
    expect((await replica.call('DELETE', at)).status).toBe(404)
    expect((await replica.call('PUT', at, { value: { key: 'c' } })).status).toBe(404)
    expect(loadFixture(replica.file.text, env)).toEqual(loadFixture(config, env))
  })

  it.each([
    [{ keyHash: 'x' }, 500, 'data did not match any variant of untagged enum LocalAPIKey'],
    [
      { key: 'k', metadata: { 'agentgateway.dev/id': 'x' } },
      400,
      'llm.apiKey metadata field agentgateway.dev/id uses the reserved agentgateway.dev/ prefix',
    ],
    [{ key: 'k', metadata: { id: 'x' } }, 400, 'llm.apiKey resources must not include value.metadata.id'],
    [{ key: '' }, 400, 'empty'],
  ])('%j is refused', async (value, status, message) => {
    const replica = await start()
    const answer = await replica.call('PUT', '/llm.apiKey', one(value))
    expect(answer.status).toBe(status)
    expect(answer.body).toContain(message)
    expect(replica.file.text).toBe(config)
  })

  it('requires the policy and is unique', async () => {
    const without = await start('llm:\n  models: []\n')
    expect(await without.call('PUT', '/llm.apiKey', one({ key: 'k' }))).toMatchObject({
      status: 409,
      body: 'DB-backed API keys require llm.policies.apiKey',
    })
    const replica = await start()
    first(await replica.call('PUT', '/llm.apiKey', one({ key: 'k' })))
    expect((await replica.call('PUT', '/llm.apiKey', one({ key: 'k' }))).status).toBe(409)
    expect((await replica.call('DELETE', '/llm.policy/apiKey')).status).toBe(409)
  })
})

describe('named records', () => {
  it('are replaced in place, without changes around them', async () => {
    const replica = await start()
    const value = { name: 'first', provider: 'echo', visibility: 'internal' }
    const stored = first(await replica.call('PUT', '/llm.model', one(value)))
    expect(stored).toEqual({ kind: 'llm.model', id: namedId('llm.model', 'first'), value })
    expect(replica.file.text).toBe(
      config.replace('      provider: echo\n', '      provider: echo\n      visibility: internal\n'),
    )
    expect(
      (await replica.call('PUT', '/llm.model/first', { value: { name: 'third', provider: 'echo' } })).status,
    ).toBe(200)
    expect(replica.running().llm?.models.map(({ name }) => name)).toEqual(['third', 'second'])
    expect((await replica.call('PUT', '/llm.model/first', { value })).status).toBe(404)
    expect(
      (await replica.call('PUT', '/llm.model/third', { value: { name: 'second', provider: 'echo' } })).status,
    ).toBe(409)
    expect((await replica.call('DELETE', `/llm.model/${namedId('llm.model', 'second')}`)).status).toBe(200)
    expect(replica.file.text).not.toContain('Costs more')
    expect((await replica.call('DELETE', '/llm.model/second')).status).toBe(404)
  })

  it('create a missing section', async () => {
    const replica = await start('# nothing yet\n{}\n')
    first(await replica.call('PUT', '/llm.provider', one({ name: 'p', provider: 'echo' })))
    first(await replica.call('PUT', '/mcp.settings', one({ port: 3111 })))
    first(await replica.call('PUT', '/traffic.gateway', one({ name: 'g', port: 8080 })))
    first(await replica.call('PUT', '/traffic.route', one({ name: 'r', gateways: 'g', backends: [] })))
    expect(replica.running()).toEqual({
      llm: { models: [], providers: [{ name: 'p', provider: 'echo' }] },
      mcp: { port: 3111, targets: [] },
      gateways: { g: { port: 8080 } },
      routes: [{ name: 'r', gateways: 'g', backends: [] }],
    })
    expect(replica.file.text).toContain('# nothing yet')
  })

  it.each(['default', 'port', 'any'])('of settings are the single record at the address %s', async (id) => {
    const replica = await start('mcp:\n  port: 3111\n  targets: []\n')
    expect(first(await replica.call('PUT', `/mcp.settings/${id}`, { value: { port: 3112 } }))).toEqual({
      kind: 'mcp.settings',
      id: namedId('mcp.settings', 'default'),
      value: { port: 3112 },
    })
    expect(replica.running().mcp).toEqual({ port: 3112, targets: [] })
    expect((await replica.call('DELETE', `/mcp.settings/${id}`)).status).toBe(200)
    expect(replica.running().mcp).toEqual({ targets: [] })
    expect((await replica.call('DELETE', `/mcp.settings/${id}`)).status).toBe(404)
  })

  it('that do not load do not change the file', async () => {
    const replica = await start()
    const answer = await replica.call('PUT', '/llm.model', one({ name: 'x', provider: 'nobody' }))
    expect(answer.status).toBe(500)
    expect(answer.body).toContain('unknown provider "nobody"')
    expect(replica.file.text).toBe(config)
    expect(replica.host.committed).toHaveLength(1)
  })
})

describe('policies', () => {
  it('are written as sent; keys of the key policy remain', async () => {
    const replica = await start()
    const key = first(await replica.call('PUT', '/llm.apiKey?reveal=true', one({ key: 'k' })))
    first(await replica.call('PUT', '/llm.policy/apiKey', { value: { mode: 'optional' } }))
    expect(replica.running().llm?.policies?.apiKey).toEqual({ mode: 'optional', keys: [key.value] })
    first(await replica.call('PUT', '/llm.policy/cors', { value: { allowOrigins: ['*'] } }))
    expect(replica.running().llm?.policies?.cors).toEqual({ allowOrigins: ['*'] })
    expect((await replica.call('DELETE', '/llm.policy/cors')).status).toBe(200)
    expect((await replica.call('DELETE', '/llm.policy/cors')).status).toBe(404)
  })
})

it.each([
  ['without config', 'llm:\n  models: []\n'],
  ['with other settings', 'config:\n  adminAddr: 127.0.0.1:15000 # here\nllm:\n  models: []\n'],
])('deleting a model catalog restores the file, %s', async (_, text) => {
  const replica = await startFileMode(text, { env })
  const value = { custom: { providers: { echo: { models: { m: { rates: { input: '1', output: '2' } } } } } } }
  first(await replica.call('PUT', '/modelCatalog', one(value)))
  expect(replica.file.text).toContain('modelCatalog')
  expect((await replica.call('DELETE', '/modelCatalog/default')).status).toBe(200)
  expect(loadFixture(replica.file.text, env)).toEqual(loadFixture(text, env))
  expect(replica.file.text).not.toContain('modelCatalog')
})

describe('the file', () => {
  it('merges a change with a concurrent edit', async () => {
    const replica = await start()
    let edits = 0
    replica.file.beforeWrite = () => {
      edits += 1
      if (edits === 1) replica.file.text = replica.file.text.replace('# Models', '# All models')
    }
    first(await replica.call('PUT', '/llm.apiKey', one({ key: 'k' })))
    expect(edits).toBe(2)
    expect(replica.file.text).toContain('# All models')
    expect(replica.host.aborted).toHaveLength(1)
  })

  it('is refused if the file changes with every attempt', async () => {
    const replica = await start()
    replica.file.beforeWrite = () => {
      replica.file.text += '#\n'
    }
    expect((await replica.call('PUT', '/llm.apiKey', one({ key: 'k' }))).status).toBe(503)
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([])
  })

  it('is not changed if it has mistakes', async () => {
    const replica = await start()
    replica.file.text = 'llm: [\n'
    expect(await replica.call('PUT', '/llm.apiKey', one({ key: 'k' }))).toMatchObject({ status: 500 })
    expect(replica.file.text).toBe('llm: [\n')
  })

  it('is not changed in a dry run or in read-only mode', async () => {
    const replica = await start()
    first(await replica.call('PUT', '/llm.apiKey?dryRun=true', one({ key: 'k' })))
    expect(replica.file.text).toBe(config)
    expect(replica.host.committed).toHaveLength(1)
    const fixed = await start(config, { mode: 'readOnly' })
    expect(await fixed.call('PUT', '/llm.apiKey', one({ key: 'k' }))).toMatchObject({
      status: 403,
      body: 'UI is configured as read-only',
    })
    expect((await fixed.call('DELETE', '/llm.model/first')).status).toBe(403)
    expect((await fixed.call('GET', '/llm.model')).status).toBe(200)
  })

  it('receives allowed references unescaped', async () => {
    const replica = await start(config, {
      allowedEnv: ['PROVIDER_KEY'],
      env: { PROVIDER_KEY: 'sk-1', OTHER: 'x' },
    })
    const params = (apiKey: string) => ({ name: 'm', provider: 'openai', params: { apiKey } })
    first(await replica.call('PUT', '/llm.model', one(params('$PROVIDER_KEY'))))
    expect(replica.running().llm?.models[2]?.params?.apiKey).toBe('sk-1')
    first(await replica.call('PUT', '/llm.model', one(params('$OTHER'))))
    expect(replica.running().llm?.models[2]?.params?.apiKey).toBe('$OTHER')
  })

  it('refuses conditions on revisions of other modes', async () => {
    const replica = await start()
    const value = { name: 'first', provider: 'echo' }
    expect((await replica.call('PUT', '/llm.model/first', { value }, { 'if-match': '"1"' })).status).toBe(412)
    expect((await replica.call('PUT', '/llm.model/first', { value }, { 'if-match': '*' })).status).toBe(200)
  })
})
