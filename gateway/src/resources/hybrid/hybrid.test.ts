import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import {
  type Answer,
  createMemoryDatabase,
  createSteppingClock,
  defaultConfig,
  loadFixture,
  type Replica,
  type ReplicaOptions,
  startHybrid,
} from '../../../test/fixtures/resources.ts'
import { DatabaseUnavailable } from '../../database/database-unavailable.ts'
import { namedId } from '../change/identity.ts'

const uuid = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
)
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

async function start(config = defaultConfig, options: ReplicaOptions = {}) {
  const clock = createSteppingClock()
  const database = createMemoryDatabase(clock)
  const replica = await startHybrid(database.open(), clock, config, options)
  return { database, clock, ...replica }
}

type Envelope = { kind: string; id: string; value: Record<string, unknown>; revision: number }

function envelopes({ body }: Answer): Envelope[] {
  return (body as { resources: Envelope[] }).resources
}

function first(answer: Answer): Envelope {
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const [envelope] = envelopes(answer)
  if (envelope === undefined) throw new Error('nothing was stored')
  return envelope
}

const create = (replica: Replica, kind: string, ...values: unknown[]) =>
  replica.call('PUT', `/${kind}`, { resources: values.map((value) => ({ value })) })
const replace = (replica: Replica, address: string, value: unknown, headers?: Record<string, string>) =>
  replica.call('PUT', `/${address}`, { value }, headers)

describe('a virtual key', () => {
  it('is created, listed, read, updated and deleted', async () => {
    const replica = await start()
    const created = first(
      await create(replica, 'llm.apiKey?reveal=true', { key: 'k-1', metadata: { name: 'ada' } }),
    )
    expect(created).toEqual({
      kind: 'llm.apiKey',
      id: uuid,
      value: { key: 'k-1', metadata: { name: 'ada', id: created.id } },
      revision: 1,
      createdAt: time,
      updatedAt: time,
    })
    expect(envelopes(await replica.call('GET', '/llm.apiKey?reveal=true'))).toEqual([created])
    expect((await replica.call('GET', `/llm.apiKey/${created.id}?reveal=true`)).body).toEqual({
      ...created,
      origin: { kind: 'database' },
    })
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([created.value])

    const updated = first(
      await replace(replica, `llm.apiKey/${created.id}?reveal=true`, { key: 'k-2', metadata: { user: 'b' } }),
    )
    expect(updated).toMatchObject({ id: created.id, revision: 2, value: { key: 'k-2' } })
    expect(updated.value['metadata']).toEqual({ user: 'b', id: created.id })
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([updated.value])

    const removed = await replica.call('DELETE', `/llm.apiKey/${created.id}`)
    expect(removed).toMatchObject({
      status: 200,
      body: { status: 'success', message: 'Configuration resource deleted successfully' },
    })
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([])
    expect(envelopes(await replica.call('GET', '/llm.apiKey?reveal=true'))).toEqual([])
    expect(await replica.call('DELETE', `/llm.apiKey/${created.id}`)).toMatchObject({
      status: 404,
      body: `config resource not found: llm.apiKey/${created.id}`,
    })
    expect((await replace(replica, `llm.apiKey/${created.id}`, { key: 'k' })).status).toBe(404)
  })

  it.each([
    [
      'an id',
      { key: 'k', metadata: { id: 'x' } },
      400,
      'llm.apiKey resources must not include value.metadata.id',
    ],
    ['no object', 'k', 400, 'llm.apiKey resources must be JSON objects'],
    [
      'metadata that is a list',
      { key: 'k', metadata: [] },
      400,
      'llm.apiKey resources require value.metadata to be an object',
    ],
    ['an empty key', { key: '' }, 400, 'llm.apiKey resources must not have an empty key'],
    [
      'both',
      { key: 'k', keyHash: `sha256:${'0'.repeat(64)}` },
      422,
      'data did not match any variant of untagged enum LocalAPIKey',
    ],
    [
      'an unknown field',
      { key: 'k', extra: 1 },
      422,
      'data did not match any variant of untagged enum LocalAPIKey',
    ],
    [
      'a malformed hash',
      { keyHash: 'sha256:12' },
      422,
      'data did not match any variant of untagged enum LocalAPIKey',
    ],
  ])('is refused with %s, on create and on update', async (_, value, status, message) => {
    const replica = await start()
    const known = first(await create(replica, 'llm.apiKey', { key: 'known' }))
    for (const answer of [
      await create(replica, 'llm.apiKey', value),
      await replace(replica, `llm.apiKey/${known.id}`, value),
    ]) {
      expect(answer.status).toBe(status)
      expect(answer.body).toContain(message)
    }
    expect(envelopes(await replica.call('GET', '/llm.apiKey'))).toEqual([known])
  })

  it('is refused without a key policy in the file', async () => {
    const replica = await start('llm:\n  models: []\n')
    expect(await create(replica, 'llm.apiKey', { key: 'k' })).toMatchObject({
      status: 409,
      body: 'DB-backed API keys require llm.policies.apiKey',
    })
  })

  it('may depend on a policy of the database, which then cannot be deleted', async () => {
    const replica = await start('llm:\n  models: []\n')
    first(await replace(replica, 'llm.policy/apiKey', { mode: 'strict' }))
    first(await create(replica, 'llm.apiKey', { key: 'k' }))
    expect(replica.running().llm?.policies?.apiKey).toMatchObject({ mode: 'strict', keys: [{ key: 'k' }] })
    expect(await replica.call('DELETE', '/llm.policy/apiKey')).toMatchObject({
      status: 409,
      body: 'DB-backed API keys require llm.policies.apiKey',
    })
  })

  it('is unique in file, database and request, as key or as hash', async () => {
    const config = defaultConfig.replace('keys: []', 'keys: [{ key: in-file }]')
    const replica = await start(config)
    expect((await create(replica, 'llm.apiKey', { key: 'in-file' })).status).toBe(409)
    const one = first(await create(replica, 'llm.apiKey', { key: 'one' }))
    const { hash } = await import('node:crypto')
    expect((await create(replica, 'llm.apiKey', { keyHash: `sha256:${hash('sha256', 'one')}` })).status).toBe(
      409,
    )
    expect((await create(replica, 'llm.apiKey', { key: 'two' }, { key: 'two' })).status).toBe(409)
    const two = first(await create(replica, 'llm.apiKey', { key: 'two' }))
    expect((await replace(replica, `llm.apiKey/${two.id}`, { key: 'one' })).status).toBe(409)
    expect((await replace(replica, `llm.apiKey/${one.id}`, { key: 'one' })).status).toBe(200)
  })

  it('does not revalidate or replace the rest of the configuration', async () => {
    const replica = await start()
    first(await create(replica, 'llm.model', { name: 'm', provider: 'echo' }))
    const before = replica.running()
    first(await create(replica, 'llm.apiKey', { key: 'a' }))
    const after = replica.running()
    expect(after.llm?.models).toBe(before.llm?.models)
    expect(after.llm).not.toBe(before.llm)
    first(await create(replica, 'llm.apiKey', { key: 'b' }))
    const [a] = after.llm?.policies?.apiKey?.keys ?? []
    expect(replica.running().llm?.policies?.apiKey?.keys[0]).toBe(a)
  })
})

describe('named records', () => {
  it.each([
    ['llm.provider', { name: 'p', provider: 'echo' }, ['llm', 'providers', 0]],
    ['llm.model', { name: 'm', provider: 'echo' }, ['llm', 'models', 1]],
    [
      'llm.virtualModel',
      { name: 'v', routing: { weighted: { targets: [{ model: 'from-file' }] } } },
      ['llm', 'virtualModels', 0],
    ],
    ['mcp.target', { name: 't', mcp: { host: 'http://127.0.0.1:9/mcp' } }, ['mcp', 'targets', 0]],
    ['traffic.route', { name: 'r', gateways: 'g', backends: [{ host: '127.0.0.1:1' }] }, ['routes', 0]],
    [
      'traffic.tcpRoute',
      { name: 'r', gateways: 'tcp', backends: [{ host: '127.0.0.1:1' }] },
      ['tcpRoutes', 0],
    ],
  ])('%s: is upserted by its name, and takes effect', async (kind, value, path) => {
    const gateways = '\ngateways:\n  g: { port: 8081 }\n  tcp: { port: 8082, protocol: TCP }\n'
    const replica = await start(defaultConfig + gateways)
    const at = () => path.reduce<unknown>((here, step) => Reflect.get(Object(here), step), replica.running())
    const created = first(await create(replica, kind, value))
    expect(created).toMatchObject({ id: namedId(kind, value.name), revision: 1, value })
    expect(at()).toEqual(value)
    expect(first(await create(replica, kind, value))).toMatchObject({ id: created.id, revision: 2 })
    expect(first(await replace(replica, `${kind}/${value.name}`, value))).toMatchObject({
      id: created.id,
      revision: 3,
    })
    expect(first(await replace(replica, `${kind}/${created.id}`, value))).toMatchObject({ revision: 4 })
    expect((await replica.call('DELETE', `/${kind}/${value.name}`)).status).toBe(200)
    expect(at()).toBeUndefined()
    expect(replica.running()).toEqual(loadFixture(defaultConfig + gateways))
  })

  it('gateways have their name as the key, not as a member', async () => {
    const replica = await start()
    first(await create(replica, 'traffic.gateway', { name: 'g', port: 8099 }))
    expect(replica.running().gateways).toEqual({ g: { port: 8099 } })
    expect((await create(replica, 'traffic.gateway', { port: 1 })).body).toBe(
      'traffic.gateway resources require value.name',
    )
  })

  it('may refer to each other within one request, which is atomic', async () => {
    const replica = await start()
    const model = (name: string, reference: string) => ({ name, provider: { reference } })
    const bad = await create(replica, 'llm.model', { name: 'good', provider: 'echo' }, model('bad', 'nobody'))
    expect(bad.status).toBe(422)
    expect(bad.body).toContain('llm.models[2].provider.reference')
    expect(replica.database.rows()).toEqual([])
    expect(replica.host.committed).toHaveLength(1)
  })

  it('cannot be deleted while others refer to them', async () => {
    const replica = await start()
    first(await create(replica, 'llm.provider', { name: 'p', provider: 'echo' }))
    first(await create(replica, 'llm.model', { name: 'm', provider: { reference: 'p' } }))
    expect((await replica.call('DELETE', '/llm.provider/p')).status).toBe(422)
    expect((await replica.call('DELETE', '/llm.model/m')).status).toBe(200)
    expect((await replica.call('DELETE', '/llm.provider/p')).status).toBe(200)
  })

  it('are renamed by address, unless the new name exists', async () => {
    const replica = await start()
    first(
      await create(replica, 'llm.model', { name: 'a', provider: 'echo' }, { name: 'b', provider: 'echo' }),
    )
    expect(await replace(replica, 'llm.model/a', { name: 'b', provider: 'echo' })).toMatchObject({
      status: 409,
      body: 'config resource already exists: llm.model/b',
    })
    expect(await replace(replica, 'llm.model/a', { name: 'from-file', provider: 'echo' })).toMatchObject({
      status: 409,
      body: 'config resource llm.model/from-file conflicts with file-owned resource',
    })
    const id = namedId('llm.model', 'a')
    const before = JSON.parse(JSON.stringify((await replica.call('GET', '/llm.model/a')).body))
    const renamed = first(await replace(replica, 'llm.model/a', { name: 'c', provider: 'echo' }))
    expect(renamed).toMatchObject({ id, revision: 2, createdAt: before.createdAt, value: { name: 'c' } })
    expect(
      replica
        .running()
        .llm?.models.map(({ name }) => name)
        .sort(),
    ).toEqual(['b', 'c', 'from-file'])
    expect((await replica.call('GET', '/llm.model/a')).status).toBe(404)
    for (const address of ['c', id]) {
      expect((await replica.call('GET', `/llm.model/${address}`)).body).toMatchObject({ id, revision: 2 })
    }
    expect(replica.database.rows().filter(({ kind }) => kind === 'llm.model')).toHaveLength(2)
  })

  it('may have the former name of another record', async () => {
    const replica = await start()
    first(await create(replica, 'llm.model', { name: 'a', provider: 'echo' }))
    const renamed = first(await replace(replica, 'llm.model/a', { name: 'b', provider: 'echo' }))
    const second = first(await create(replica, 'llm.model', { name: 'a', provider: 'echo' }))
    expect(second.id).not.toBe(renamed.id)
    expect(second).toMatchObject({ revision: 1, value: { name: 'a' } })
    expect((await replica.call('GET', '/llm.model/a')).body).toMatchObject({ id: second.id })
    const again = first(
      await create(replica, 'llm.model', { name: 'b', provider: 'echo', visibility: 'internal' }),
    )
    expect(again).toMatchObject({ id: renamed.id, revision: 3 })
    expect((await replica.call('DELETE', '/llm.model/b')).status).toBe(200)
    expect(replica.running().llm?.models.map(({ name }) => name)).toEqual(['from-file', 'a'])
  })

  it('with the name of an older record block changes until one is removed', async () => {
    const replica = await start()
    first(await create(replica, 'llm.model', { name: 'a', provider: 'echo' }))
    const id = '6f0c0d52-6b0c-4b52-8f38-0d3a1d4f2a10'
    replica.database.put({ kind: 'llm.model', id, value: { name: 'a', provider: 'echo' } })
    await until(() => replica.host.reported !== undefined)
    expect(replica.host.reported).toContain(
      `llm.model/${id} in the database cannot be used: an older record has`,
    )
    expect((await replica.call('DELETE', `/llm.model/${id}`)).status).toBe(200)
    expect(replica.running().llm?.models.map(({ name }) => name)).toEqual(['from-file', 'a'])
  })

  it('of the file cannot be created, updated or deleted', async () => {
    const replica = await start()
    const value = { name: 'from-file', provider: 'echo' }
    expect(await create(replica, 'llm.model', value)).toMatchObject({
      status: 409,
      body: 'config resource llm.model/from-file conflicts with file-owned resource',
    })
    for (const id of ['from-file', namedId('llm.model', 'from-file')]) {
      expect(await replace(replica, `llm.model/${id}`, value)).toMatchObject({
        status: 409,
        body: `file-owned config resource cannot be updated in hybrid mode: llm.model/${id}`,
      })
    }
    expect((await replica.call('DELETE', '/llm.model/from-file')).status).toBe(404)
    expect((await replace(replica, 'llm.model/nowhere', { ...value, name: 'nowhere' })).status).toBe(404)
  })

  it('are found by id before name, and may have names with any characters', async () => {
    const replica = await start()
    const name = 'meta/llama ü "quoted" \u0000 %2F ..'
    const created = first(await create(replica, 'llm.model', { name: 'x', id: name, provider: 'echo' }))
    expect(created.id).toBe(namedId('llm.model', name))
    const address = `llm.model/${encodeURIComponent(name)}`
    expect(first(await replace(replica, address, { name: 'y', id: name, provider: 'echo' })).revision).toBe(2)
    expect((await replica.call('GET', `/${address}`)).status).toBe(200)
    first(await create(replica, 'llm.model', { name: 'meta/plain', provider: 'echo' }))
    expect((await replica.call('DELETE', '/llm.model/meta/plain')).status).toBe(200)
    expect((await replica.call('DELETE', `/${address}`)).status).toBe(200)
  })
})

describe('policies', () => {
  it('are created and replaced at the address of their field', async () => {
    const replica = await start()
    const cors = { allowOrigins: ['https://a.example'] }
    const created = first(await replace(replica, 'llm.policy/cors', cors))
    expect(created).toMatchObject({
      id: namedId('llm.policy', 'cors'),
      name: 'cors',
      value: cors,
      revision: 1,
    })
    expect(replica.running().llm?.policies?.cors).toEqual(cors)
    expect(first(await replace(replica, `llm.policy/${created.id}`, cors)).revision).toBe(2)
    const other = { name: 'cors', allowOrigins: ['*'] }
    expect(first(await create(replica, 'llm.policy', other))).toMatchObject({
      value: { allowOrigins: ['*'] },
      revision: 3,
    })
    expect((await replica.call('DELETE', '/llm.policy/cors')).status).toBe(200)
    expect(replica.running().llm?.policies?.cors).toBeUndefined()
  })

  it('may be lists', async () => {
    const replica = await start()
    const limits = [{ requests: 10, unit: 'Minutes' }]
    expect(first(await replace(replica, 'llm.policy/localRateLimit', limits)).value).toEqual(limits)
    expect(replica.running().llm?.policies?.localRateLimit).toEqual(limits)
  })

  it.each([
    ['PUT', '/llm.policy', { resources: [{ value: {} }] }, 400, 'llm.policy resources require an item ID'],
    [
      'PUT',
      '/llm.policy/apiKey',
      { value: { keys: [] } },
      400,
      'llm.policy/apiKey must not include keys; use llm.apiKey resources',
    ],
    ['PUT', '/llm.policy/nonsense', { value: {} }, 422, 'there is no such policy'],
    ['PUT', '/llm.policy/__proto__', { value: {} }, 422, 'there is no such policy'],
    ['PUT', '/llm.policy/apiKey', { value: {} }, 409, 'conflicts with file-owned resource'],
    ['PUT', '/llm.policy/cors', { value: { allowOrigin: [] } }, 422, 'allowOrigins'],
    [
      'PUT',
      '/ui.policy/cors',
      { value: { allowOrigins: [] } },
      409,
      'DB-backed UI policies require ui in the file config',
    ],
  ])('%s %s is refused', async (method, path, body, status, message) => {
    const replica = await start()
    const answer = await replica.call(method, path, body)
    expect(answer.status).toBe(status)
    expect(answer.body).toContain(message)
  })

  it('require their section', async () => {
    const replica = await start('{}')
    expect(await replace(replica, 'llm.policy/cors', { allowOrigins: [] })).toMatchObject({
      status: 409,
      body: 'DB-backed LLM policies require llm in the file config',
    })
  })
})

describe('the settings of MCP', () => {
  it('are one record, which sets only fields absent from the file', async () => {
    const replica = await start('mcp:\n  port: 3111\n  targets: []\n')
    const stored = first(await create(replica, 'mcp.settings', { failureMode: 'failOpen' }))
    expect(stored.id).toBe(namedId('mcp.settings', 'default'))
    expect(replica.running().mcp).toMatchObject({ port: 3111, failureMode: 'failOpen' })
    first(await replace(replica, 'mcp.settings/default', { prefixMode: 'always' }))
    expect(replica.running().mcp).toEqual({ port: 3111, targets: [], prefixMode: 'always' })
    expect(await create(replica, 'mcp.settings', { port: 3112 })).toMatchObject({
      status: 409,
      body: 'file-owned mcp.settings/default field cannot be updated in hybrid mode: port',
    })
    expect((await create(replica, 'mcp.settings', { port: 3111 })).status).toBe(200)
    expect(await create(replica, 'mcp.settings', { targets: [] })).toMatchObject({
      status: 400,
      body: 'mcp.settings/default contains unsupported field: targets',
    })
  })
})

describe('conditions', () => {
  it('allow a change only with the current revision', async () => {
    const replica = await start()
    const { id } = first(await create(replica, 'llm.apiKey', { key: 'a' }))
    const at = `llm.apiKey/${id}`
    expect((await replica.call('GET', `/${at}`)).headers['etag']).toBe('"1"')
    expect((await replace(replica, at, { key: 'b' }, { 'if-match': '"2"' })).status).toBe(412)
    expect((await replace(replica, at, { key: 'b' }, { 'if-match': 'W/"1"' })).status).toBe(412)
    expect((await replace(replica, at, { key: 'b' }, { 'if-match': '1' })).status).toBe(400)
    const updated = await replace(replica, at, { key: 'b' }, { 'if-match': '"7", "1"' })
    expect(updated.headers['etag']).toBe('"2"')
    expect((await replica.call('DELETE', `/${at}`, undefined, { 'if-match': '"1"' })).status).toBe(412)
    expect((await replica.call('DELETE', `/${at}`, undefined, { 'if-match': '*' })).status).toBe(200)
  })

  it('allow one of two concurrent changes of a revision', async () => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    const replicas = [
      await startHybrid(database.open(), clock),
      await startHybrid(database.open(), clock),
    ] as const
    const { id } = first(await create(replicas[0], 'llm.apiKey', { key: 'a' }))
    const answers = await Promise.all(
      replicas.map((replica, index) =>
        replace(replica, `llm.apiKey/${id}`, { key: `b${index}` }, { 'if-match': '"1"' }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
  })
})

describe('a dry run', () => {
  it('returns the result without storing it', async () => {
    const replica = await start()
    const body = { resources: [{ value: { name: 'm', provider: 'echo' } }] }
    const answer = await replica.call('PUT', '/llm.model?dryRun=true', body)
    expect(first(answer)).toMatchObject({ id: namedId('llm.model', 'm'), revision: 1, createdAt: time })
    expect(replica.database.rows()).toEqual([])
    expect(replica.host.committed).toHaveLength(1)
    expect(replica.host.aborted).toHaveLength(1)
    expect(envelopes(await replica.call('GET', '/llm.model'))).toEqual([])
    expect((await replica.call('PUT', '/llm.model?dryRun=maybe', body)).status).toBe(400)
    const wrong = { resources: [{ value: { name: 'm', provider: 'ecco' } }] }
    expect((await replica.call('PUT', '/llm.model?dryRun=true', wrong)).status).toBe(422)
  })
})

describe('file and database', () => {
  it('are merged; the file has precedence, and the record is marked as shadowed', async () => {
    const replica = await start()
    first(await create(replica, 'llm.model', { name: 'm', provider: 'echo' }))
    first(await create(replica, 'llm.apiKey', { key: 'k' }))
    const next = defaultConfig
      .replace(
        '- name: from-file',
        '- name: m\n      provider: echo\n      visibility: internal\n    - name: from-file',
      )
      .replace('keys: []', 'keys: [{ key: k, metadata: { name: from-file } }]')
    await replica.host.exclusive(() => replica.resources.useFile(loadFixture(next)))
    expect(replica.running()).toEqual(loadFixture(next))
    expect(envelopes(await replica.call('GET', '/llm.model'))).toMatchObject([{ shadowed: true }])
    expect(envelopes(await replica.call('GET', '/llm.apiKey'))).toMatchObject([{ shadowed: true }])
    expect(replica.log.lines.filter(({ level }) => level === 'warn')).toHaveLength(2)
    expect((await replica.call('DELETE', '/llm.model/m')).status).toBe(200)
  })

  it('reject a file without the policy that keys of the database require', async () => {
    const replica = await start()
    first(await create(replica, 'llm.apiKey', { key: 'k' }))
    const before = replica.running()
    const next = loadFixture('llm:\n  models: []\n')
    await expect(replica.host.exclusive(() => replica.resources.useFile(next))).rejects.toThrow(
      'DB-backed API keys require llm.policies.apiKey',
    )
    expect(replica.running()).toBe(before)
  })

  it('share unchanged parts after a change', async () => {
    const replica = await start()
    first(await create(replica, 'mcp.target', { name: 't', mcp: { host: 'http://127.0.0.1:9' } }))
    const before = replica.running()
    first(await create(replica, 'llm.model', { name: 'm', provider: 'echo' }))
    const after = replica.running()
    expect(after.mcp).toBe(before.mcp)
    expect(after.llm?.policies).toBe(before.llm?.policies)
    first(await create(replica, 'mcp.target', { name: 'u', mcp: { host: 'http://127.0.0.1:9' } }))
    expect(replica.running().llm).toBe(after.llm)
    expect(replica.running().mcp?.targets[0]).toBe(before.mcp?.targets[0])
  })

  it('keep dollar signs literal, except in allowed variables', async () => {
    const options = { allowedEnv: ['PROVIDER_KEY', 'UNSET'], env: { PROVIDER_KEY: 'sk-1', OTHER: 'secret' } }
    const replica = await start(defaultConfig, options)
    const model = (apiKey: string) => ({ name: 'm', provider: 'openai', params: { apiKey } })
    // biome-ignore lint/suspicious/noTemplateCurlyInString: references as users write them
    const stored = first(await create(replica, 'llm.model?reveal=true', model('${PROVIDER_KEY}')))
    // biome-ignore lint/suspicious/noTemplateCurlyInString: references as users write them
    expect(stored.value).toEqual(model('${PROVIDER_KEY}'))
    expect(replica.running().llm?.models[1]).toEqual(model('sk-1'))
    first(await create(replica, 'llm.model', model('$OTHER$$x')))
    expect(replica.running().llm?.models[1]).toEqual(model('$OTHER$$x'))
    expect(await create(replica, 'llm.model', model('$UNSET'))).toMatchObject({
      status: 422,
      body: 'environment variable not found: UNSET',
    })
    const key = first(await create(replica, 'llm.apiKey?reveal=true', { key: '$PROVIDER_KEY' }))
    expect(key.value).toEqual({ key: '$PROVIDER_KEY', metadata: { id: key.id } })
    expect(replica.running().llm?.policies?.apiKey?.keys).toMatchObject([{ key: 'sk-1' }])
  })
})

describe('several replicas', () => {
  it('apply the changes of each other', async () => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    const [one, other] = [
      await startHybrid(database.open(), clock),
      await startHybrid(database.open(), clock),
    ]
    const { id } = first(await create(one, 'llm.apiKey', { key: 'k' }))
    await until(() => (other.running().llm?.policies?.apiKey?.keys.length ?? 0) === 1)
    expect(other.running()).toEqual(one.running())
    expect((await other.call('DELETE', `/llm.apiKey/${id}`)).status).toBe(200)
    await until(() => one.running().llm?.policies?.apiKey?.keys.length === 0)
  })

  it('validate a write together with unread changes of others', async () => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    const [one, other] = [
      await startHybrid(database.open(), clock),
      await startHybrid(database.open(), clock),
    ]
    first(await create(one, 'llm.provider', { name: 'p', provider: 'echo' }))
    database.isSilent = true
    first(await create(one, 'llm.model', { name: 'm', provider: { reference: 'p' } }))
    expect((await other.call('DELETE', '/llm.provider/p')).status).toBe(422)
    expect((await create(other, 'llm.apiKey', { key: 'k' })).status).toBe(200)
    expect(other.running().llm?.models.map(({ name }) => name)).toEqual(['from-file', 'm'])
  })

  it.each([
    ['is refused', '/llm.apiKey/00000000-0000-4000-8000-000000000000'],
    ['is only tried', '/llm.model/m?dryRun=true'],
  ])('apply changes of others also with a write that %s', async (_title, path) => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    const [one, other] = [
      await startHybrid(database.open(), clock),
      await startHybrid(database.open(), clock),
    ]
    first(await create(one, 'llm.model', { name: 'm', provider: 'echo' }))
    const { id } = first(await create(one, 'llm.apiKey', { key: 'k' }))
    await until(() => other.running().llm?.policies?.apiKey?.keys.length === 1)
    // The store reports a change once: to the watcher, or as the result of a write.
    database.isSilent = true
    expect((await one.call('DELETE', `/llm.apiKey/${id}`)).status).toBe(200)
    const { status } = await other.call('DELETE', path)
    expect(status).toBe(path.endsWith('dryRun=true') ? 200 : 404)
    expect(other.running().llm?.policies?.apiKey?.keys).toEqual([])
  })

  it('retain the active configuration after an invalid record, until it is corrected', async () => {
    const replica = await start()
    const { database } = replica
    const id = namedId('llm.model', 'bad')
    database.put({ kind: 'llm.model', id, value: { name: 'bad', provider: 'nobody' } })
    await until(() => replica.host.reported !== undefined)
    expect(replica.running()).toEqual(loadFixture(defaultConfig))
    expect(replica.host.reported).toContain('unknown provider')
    expect((await create(replica, 'llm.model', { name: 'good', provider: 'echo' })).status).toBe(422)
    expect((await replica.call('DELETE', '/llm.model/bad')).status).toBe(200)
    expect(replica.host.reported).toBeUndefined()
    expect((await create(replica, 'llm.model', { name: 'good', provider: 'echo' })).status).toBe(200)
  })

  it('ignore records of unknown kinds and report them', async () => {
    const replica = await start()
    replica.database.put({ kind: 'llm.future', id: 'x', value: { a: 1 } })
    await until(() => replica.log.lines.some(({ message }) => message.includes('not usable')))
    expect((await create(replica, 'llm.apiKey', { key: 'k' })).status).toBe(200)
    expect(replica.resources.status().database?.problems).toMatchObject([{ kind: 'llm.future', id: 'x' }])
    expect(replica.database.rows()).toHaveLength(2)
  })

  it('do not activate a configuration without an unreadable policy', async () => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    database.put({ kind: 'llm.policy', id: namedId('llm.policy', 'authorization'), value: { damaged: true } })
    const replica = await startHybrid(database.open(), clock)
    expect(replica.resources.pending()).toBe('config resources')
    expect(replica.host.reported).toContain('llm.policy/')
    // A certificate is renewed meanwhile.
    await expect(replica.resources.reapply()).rejects.toThrow('llm.policy/')
    expect(replica.resources.pending()).toBe('config resources')
    expect(replica.host.reported).toContain('llm.policy/')
    expect((await replica.call('DELETE', '/llm.policy/authorization')).status).toBe(200)
    expect(replica.resources.pending()).toBeUndefined()
  })

  it('allow the removal of unreadable records, one by one', async () => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    for (const name of ['authorization', 'localRateLimit'])
      database.put({ kind: 'llm.policy', id: namedId('llm.policy', name), value: { damaged: true } })
    const replica = await startHybrid(database.open(), clock)
    expect((await create(replica, 'llm.model', { name: 'm', provider: 'echo' })).status).toBe(422)
    expect((await replica.call('DELETE', '/llm.policy/authorization?dryRun=true')).status).not.toBe(200)
    expect((await replica.call('DELETE', '/llm.policy/authorization')).status).toBe(200)
    expect(replica.resources.pending()).toBe('config resources')
    expect(database.rows()).toHaveLength(1)
    expect((await replica.call('DELETE', '/llm.policy/localRateLimit')).status).toBe(200)
    expect(replica.resources.pending()).toBeUndefined()
  })
})

describe('a database outage', () => {
  it('at start blocks traffic until the first read', async () => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    database.put({ kind: 'llm.apiKey', id: '11111111-1111-4111-8111-111111111111', value: { key: 'k' } })
    database.isAway = true
    const replica = await startHybrid(database.open(), clock)
    expect(replica.resources.pending()).toBe('database')
    expect((await replica.call('GET', '/llm.apiKey')).status).toBe(503)
    expect((await create(replica, 'llm.apiKey', { key: 'x' })).status).toBe(503)
    database.isAway = false
    await until(() => replica.resources.pending() === undefined)
    expect(replica.running().llm?.policies?.apiKey?.keys).toHaveLength(1)
  })

  it('later keeps the configuration active and refuses writes', async () => {
    const replica = await start()
    first(await create(replica, 'llm.apiKey', { key: 'k' }))
    const before = replica.running()
    expect(replica.host.outage).toBeUndefined()
    replica.database.isAway = true
    expect(await create(replica, 'llm.apiKey', { key: 'x' })).toMatchObject({ status: 503 })
    expect(replica.running()).toBe(before)
    expect(replica.resources.status().database).toMatchObject({
      state: 'lost',
      lastError: 'the database is away',
    })
    expect(envelopes(await replica.call('GET', '/llm.apiKey'))).toHaveLength(1)
    replica.database.isAway = false
    await until(() => replica.resources.status().database?.state === 'connected')
    expect((await create(replica, 'llm.apiKey', { key: 'x' })).status).toBe(200)
  })

  it('discards a prepared configuration if the commit fails', async () => {
    const replica = await start()
    const { host, database } = replica
    const { prepare } = host
    host.prepare = async (config) => {
      database.isAway = true
      return prepare(config)
    }
    expect((await create(replica, 'llm.apiKey', { key: 'x' })).status).toBe(503)
    expect(host.aborted).toHaveLength(1)
    expect(database.rows()).toEqual([])
  })
})

describe('a change that waits for the database', () => {
  it('does not delay a reload of the file, and applies to the new file', async () => {
    const replica = await start()
    const locked = Promise.withResolvers<void>()
    replica.database.lockWait = locked.promise
    const changes = Promise.all(['a', 'b'].map((key) => create(replica, 'llm.apiKey', { key })))
    const reloaded = loadFixture(defaultConfig.replace('from-file', 'reloaded'))
    await replica.host.exclusive(() => replica.resources.useFile(reloaded))
    expect(replica.running().llm?.models).toMatchObject([{ name: 'reloaded' }])
    expect(replica.running().llm?.policies?.apiKey?.keys).toEqual([])
    locked.resolve()
    expect((await changes).map(({ status }) => status)).toEqual([200, 200])
    expect(replica.running().llm?.models).toMatchObject([{ name: 'reloaded' }])
    expect(replica.running().llm?.policies?.apiKey?.keys).toMatchObject([{ key: 'a' }, { key: 'b' }])
  })

  it('is not reverted by an earlier read', async () => {
    const replica = await start()
    const answered = Promise.withResolvers<void>()
    replica.database.answerWait = answered.promise
    replica.database.put({ kind: 'llm.apiKey', id: crypto.randomUUID(), value: { key: 'theirs' } })
    await delay(10)
    first(await create(replica, 'llm.apiKey', { key: 'ours' }))
    const { generation } = replica.resources.status().database ?? {}
    replica.database.answerWait = undefined
    answered.resolve()
    await delay(20)
    expect(replica.resources.status().database?.generation).toBe(generation)
    expect(replica.running().llm?.policies?.apiKey?.keys).toMatchObject([{ key: 'theirs' }, { key: 'ours' }])
  })

  it('is completed before the process ends', async () => {
    const replica = await start()
    const locked = Promise.withResolvers<void>()
    replica.database.lockWait = locked.promise
    const steps: string[] = []
    const change = create(replica, 'llm.apiKey', { key: 'a' }).then(() => steps.push('answered'))
    await delay(5)
    const idle = replica.resources.idle().then(() => steps.push('idle'))
    await delay(5)
    expect(steps).toEqual([])
    locked.resolve()
    await Promise.all([change, idle])
    expect(steps.toSorted()).toEqual(['answered', 'idle'])
  })
})

describe.each([
  ['llm.apiKey', (index: number) => ({ key: `k-${index}`, metadata: { name: `user ${index}` } })],
  ['llm.model', (index: number) => ({ name: `m-${index}`, provider: 'echo', params: { model: 'a' } })],
])('a change of 5,000 records of %s', (kind, recordOf) => {
  it('yields to traffic', async () => {
    const replica = await start()
    const values = Array.from({ length: 5_000 }, (_, index) => recordOf(index))
    const stretches: number[] = []
    let isOver = false
    let before = process.threadCpuUsage()
    const tick = () => {
      const now = process.threadCpuUsage()
      stretches.push((now.user + now.system - before.user - before.system) / 1000)
      before = now
      if (!isOver) setImmediate(tick)
    }
    setImmediate(tick)
    expect((await create(replica, kind, ...values)).status).toBe(200)
    isOver = true
    const total = stretches.reduce((sum, ms) => sum + ms, 0)
    expect(stretches.length).toBeGreaterThan(20)
    expect(Math.max(...stretches)).toBeLessThan(Math.max(50, total / 3))
  })
})

describe('a change that takes longer to check than the store waits', () => {
  it.each([
    ['before it is checked', 0],
    ['while it is checked', 1],
  ])('is abandoned %s and never activated', async (_, aborted) => {
    const clock = createSteppingClock()
    const database = createMemoryDatabase(clock)
    const store = database.open()
    const checking = Promise.withResolvers<void>()
    let planned: Promise<unknown> | undefined
    const replica = await startHybrid(
      {
        ...store,
        async write(known, plan) {
          if (aborted > 0) replica.host.prepareWait = checking.promise
          planned = plan(await store.read(known))
          if (aborted > 0) await delay(5)
          throw new DatabaseUnavailable('the change took longer than 60 s to check', undefined)
        },
      },
      clock,
    )
    const before = replica.running()
    expect((await create(replica, 'llm.apiKey', { key: 'k' })).status).toBe(503)
    checking.resolve()
    await planned
    expect(replica.host.aborted).toHaveLength(aborted)
    expect(replica.running()).toBe(before)
    await replica.resources.close()
  })
})

describe('a configuration that compiles but cannot run', () => {
  it('is refused and not stored', async () => {
    const replica = await start()
    replica.host.failure = new Error('cannot listen on 127.0.0.1:80: not allowed')
    expect(await create(replica, 'llm.model', { name: 'm', provider: 'echo' })).toMatchObject({
      status: 422,
      body: 'cannot listen on 127.0.0.1:80: not allowed',
    })
    expect(replica.database.rows()).toEqual([])
  })
})

describe('every change', () => {
  it('is logged with requester, record and fields, without secrets', async () => {
    const replica = await start()
    const { id } = first(await create(replica, 'llm.apiKey', { key: 'sk-secret', metadata: { name: 'n' } }))
    await replace(replica, `llm.apiKey/${id}`, { key: 'sk-other', metadata: { name: 'n' } })
    await replica.call('DELETE', `/llm.apiKey/${id}`)
    await create(replica, 'llm.apiKey', { key: '' })
    const audits = replica.log.lines.flatMap(({ fields }) => ('audit' in fields ? [fields.audit] : []))
    const who = { kind: 'llm.apiKey', id, address: '127.0.0.1' }
    expect(audits).toMatchObject([
      { ...who, op: 'put', revision: 1, fields: ['key', 'metadata'] },
      { ...who, op: 'put', revision: 2, fields: ['key'] },
      { ...who, op: 'remove', revision: 2, fields: ['key', 'metadata'] },
    ])
    expect(JSON.stringify(replica.log.lines)).not.toMatch(/sk-/)
  })
})

async function until(condition: () => boolean): Promise<void> {
  for (let round = 0; round < 400 && !condition(); round++) await delay(5)
  expect(condition()).toBe(true)
}
