import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'
import {
  keyedEcho,
  type ResourceApi,
  resourceApi,
  sqliteUrl,
  statusWith,
  stored,
} from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

/** The rules, tables and errors of the specification, for every storage. */

const storages = [
  { storage: 'file', isHybrid: false, missing: undefined, url: async () => undefined },
  { storage: 'SQLite', isHybrid: true, missing: undefined, url: async () => sqliteUrl() },
  {
    storage: 'Postgres',
    isHybrid: true,
    missing: postgresMissing,
    url: async () => (await startPostgres()).createDatabase(),
  },
] as const

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/
const sha256 = (key: string) => `sha256:${createHash('sha256').update(key).digest('hex')}`

describe.each(storages)('resources in $storage', ({ isHybrid, missing, url }) => {
  describe.skipIf(missing !== undefined)('by HTTP', () => {
    let gateway: Gateway
    let api: ResourceApi
    let keys = 0
    const newKey = () => `tg-${++keys}-of-the-test`

    beforeAll(async () => {
      gateway = await startGateway(stored(keyedEcho, await url()), { lifetime: 'file' })
      api = resourceApi(gateway)
    })

    it('a key works on the next request, and no more once it is deleted', async () => {
      const key = newKey()
      expect(await statusWith(gateway, key)).toBe(401)
      const { id } = await api.create('llm.apiKey', { key })
      expect(await statusWith(gateway, key)).toBe(200)
      await api.remove('llm.apiKey', id)
      expect(await statusWith(gateway, key)).toBe(401)
      expect(await api.ask('DELETE', `/llm.apiKey/${id}`)).toMatchObject({
        status: 404,
        body: `config resource not found: llm.apiKey/${id}`,
      })
    })

    it('an envelope has the members of the specification, also in lists in hybrid mode', async () => {
      const value = { key: newKey(), metadata: { name: 'n', user: 'u', group: 'g', team: 7 } }
      const created = await api.create('llm.apiKey', value)
      const { id } = created
      expect(created).toEqual({
        kind: 'llm.apiKey',
        id: expect.stringMatching(uuid),
        value: { ...value, metadata: { ...value.metadata, id } },
        ...(isHybrid && {
          revision: 1,
          createdAt: expect.stringMatching(timestamp),
          updatedAt: created.createdAt,
        }),
      })
      const listed = await api.list('llm.apiKey')
      if (!isHybrid) expect(listed).toEqual([])
      else expect(listed.find((envelope) => envelope.id === id)).toEqual(created)
      expect(await api.ask('GET', `/llm.apiKey/${id}`)).toMatchObject({
        status: 200,
        body: { kind: 'llm.apiKey', id },
      })
      await api.remove('llm.apiKey', id)
    })

    it('an update replaces the record, counts its revision and keeps the time it was made at', async () => {
      const [before, after] = [newKey(), newKey()]
      const made = await api.create('llm.apiKey', { key: before, metadata: { name: 'n', user: 'u' } })
      const update = await api.ask('PUT', `/llm.apiKey/${made.id}`, {
        value: { keyHash: sha256(after), metadata: { name: 'm' } },
      })
      expect(update).toMatchObject({
        status: 200,
        body: { resources: [{ id: made.id, kind: 'llm.apiKey' }] },
      })
      expect(update.body).toMatchObject({
        resources: [{ value: { keyHash: sha256(after), metadata: { name: 'm', id: made.id } } }],
      })
      expect(JSON.stringify(update.body)).not.toContain('"user"')
      if (isHybrid) {
        expect(update.body).toMatchObject({ resources: [{ revision: 2, createdAt: made.createdAt }] })
      }
      expect(await statusWith(gateway, before)).toBe(401)
      expect(await statusWith(gateway, after)).toBe(200)
      await api.remove('llm.apiKey', made.id)
      expect(await statusWith(gateway, after)).toBe(401)
    })

    it('several records of one request are stored, and existing ones stay', async () => {
      const [first, second, third] = [newKey(), newKey(), newKey()]
      const kept = await api.create('llm.apiKey', { key: first })
      const answer = await api.ask('PUT', '/llm.apiKey?reveal=true', {
        resources: [{ value: { key: second } }, { value: { key: third } }],
      })
      expect(answer.body).toMatchObject({
        resources: [{ value: { key: second } }, { value: { key: third } }],
      })
      for (const key of [first, second, third]) expect(await statusWith(gateway, key)).toBe(200)
      const bad = await api.ask('PUT', '/llm.apiKey', {
        resources: [{ value: { key: 'tg-x' } }, { value: { keyHash: 'x' } }],
      })
      expect(bad.status).toBe(isHybrid ? 422 : 500)
      expect(await statusWith(gateway, 'tg-x')).toBe(401)
      await api.remove('llm.apiKey', kept.id)
    })

    it('two requests for one key at once have one winner', async () => {
      const value = { key: newKey() }
      const answers = await Promise.all(
        [1, 2, 3].map(() => api.ask('PUT', '/llm.apiKey', { resources: [{ value }] })),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    })

    it.each([
      ['GET', '/apiKey', undefined, 400, 'unsupported config resource kind: apiKey'],
      ['PUT', '/apiKey', { resources: [] }, 400, 'unsupported config resource kind: apiKey'],
      ['PUT', '/apiKey/x', { value: {} }, 400, 'unsupported config resource kind: apiKey'],
      ['DELETE', '/models/x', undefined, 400, 'unsupported config resource kind: models'],
      [
        'PUT',
        '/llm.apiKey',
        { resources: [{ value: { key: 'k', metadata: { id: 'x' } } }] },
        400,
        'llm.apiKey resources must not include value.metadata.id',
      ],
      [
        'PUT',
        '/llm.apiKey',
        { resources: [{ value: 'k' }] },
        400,
        'llm.apiKey resources must be JSON objects',
      ],
      [
        'PUT',
        '/llm.apiKey',
        { resources: [{ value: { key: 'k', metadata: 1 } }] },
        400,
        'llm.apiKey resources require value.metadata to be an object',
      ],
      [
        'PUT',
        '/llm.apiKey',
        { resources: [{ value: { key: '' } }] },
        400,
        'llm.apiKey resources must not have an empty key',
      ],
      ['PUT', '/llm.apiKey/', { value: { key: 'k' } }, 400, 'config resource id cannot be empty'],
      [
        'PUT',
        '/llm.provider',
        { resources: [{ value: {} }] },
        400,
        'llm.provider resources require value.name',
      ],
      [
        'PUT',
        '/llm.model',
        { resources: [{ value: {} }] },
        400,
        'llm.model resources require value.id or value.name',
      ],
      ['PUT', '/llm.policy', { resources: [{ value: {} }] }, 400, 'llm.policy resources require an item ID'],
      [
        'PUT',
        '/llm.policy/apiKey',
        { value: { keys: [] } },
        400,
        'llm.policy/apiKey must not include keys; use llm.apiKey resources',
      ],
      [
        'PUT',
        '/mcp.settings',
        { resources: [{ value: { targets: [] } }] },
        400,
        'mcp.settings/default contains unsupported field: targets',
      ],
      [
        'PUT',
        '/llm.model/none',
        { value: { name: 'none', provider: 'echo' } },
        404,
        'config resource not found: llm.model/none',
      ],
      ['DELETE', '/llm.model/none', undefined, 404, 'config resource not found: llm.model/none'],
      ['POST', '/llm.apiKey', { resources: [] }, 405, 'method POST is not allowed here'],
      ['DELETE', '/llm.apiKey', undefined, 405, 'method DELETE is not allowed here'],
    ] as const)('%s %s with %j is answered with %i %s', async (method, path, body, status, message) => {
      expect(await api.ask(method, path, body)).toMatchObject({ status, body: message })
    })

    it('a record that is neither key nor hash is refused by the words users know', async () => {
      const { id } = await api.create('llm.apiKey', { key: newKey() })
      const words = 'data did not match any variant of untagged enum LocalAPIKey'
      const status = isHybrid ? 422 : 500
      for (const value of [
        {},
        { metadata: {} },
        { key: 'k', keyHash: sha256('k') },
        { key: 'k', x: 1 },
        { keyHash: 'md5:1' },
      ]) {
        const update = await api.ask('PUT', `/llm.apiKey/${id}`, { value })
        expect(update).toMatchObject({ status, body: expect.stringContaining(words) })
        // On create, the gateway generates the missing key.
        if (!('key' in value || 'keyHash' in value)) continue
        const create = await api.ask('PUT', '/llm.apiKey', { resources: [{ value }] })
        expect(create).toMatchObject({ status, body: expect.stringContaining(words) })
      }
      await api.remove('llm.apiKey', id)
    })

    it('a configuration that would not load is refused with the reason', async () => {
      const model = { name: 'm', provider: { reference: 'nobody' } }
      const answer = await api.ask('PUT', '/llm.model', { resources: [{ value: model }] })
      expect(answer).toMatchObject({ status: isHybrid ? 422 : 500, body: expect.stringContaining('nobody') })
      expect((await api.ask('GET', '/llm.model/m')).status).toBe(404)
      expect(await gateway.status()).toMatchObject({ synchronized: true })
    })

    it('a record that others refer to cannot be deleted first', async () => {
      await api.create('llm.provider', { name: 'shared', provider: 'echo' })
      await api.create('llm.model', { name: 'needs', provider: { reference: 'shared' } })
      expect((await api.ask('DELETE', '/llm.provider/shared')).status).toBe(isHybrid ? 422 : 500)
      await api.remove('llm.model', 'needs')
      await api.remove('llm.provider', 'shared')
    })

    it('entries of the file cannot be changed through the database', async () => {
      if (!isHybrid) return
      const value = { name: 'from-file', provider: 'echo' }
      expect(await api.ask('PUT', '/llm.model', { resources: [{ value }] })).toMatchObject({
        status: 409,
        body: 'config resource llm.model/from-file conflicts with file-owned resource',
      })
      expect(await api.ask('PUT', '/llm.model/from-file', { value })).toMatchObject({
        status: 409,
        body: 'file-owned config resource cannot be updated in hybrid mode: llm.model/from-file',
      })
    })

    it('a dry run returns the result, and changes nothing', async () => {
      const key = newKey()
      const dry = await api.ask('PUT', '/llm.apiKey?dryRun=true&reveal=true', {
        resources: [{ value: { key } }],
      })
      expect(dry).toMatchObject({
        status: 200,
        body: { resources: [{ kind: 'llm.apiKey', value: { key } }] },
      })
      expect(await statusWith(gateway, key)).toBe(401)
      const bad = await api.ask('PUT', '/llm.apiKey?dryRun=true', {
        resources: [{ value: { keyHash: 'x' } }],
      })
      expect(bad.status).toBe(isHybrid ? 422 : 500)
      const { id } = await api.create('llm.apiKey', { key })
      expect((await api.ask('DELETE', `/llm.apiKey/${id}?dryRun=true`)).status).toBe(200)
      expect(await statusWith(gateway, key)).toBe(200)
      expect((await api.ask('PUT', '/llm.apiKey?dryRun=maybe', { resources: [] })).status).toBe(400)
      await api.remove('llm.apiKey', id)
    })

    it('a change may demand a revision', async () => {
      const { id } = await api.create('llm.apiKey', { key: newKey() })
      const put = (ifMatch: string) =>
        api.ask('PUT', `/llm.apiKey/${id}`, { value: { key: newKey() } }, { 'if-match': ifMatch })
      if (isHybrid) {
        expect((await api.ask('GET', `/llm.apiKey/${id}`)).headers['etag']).toBe('"1"')
        expect(await put('"1"')).toMatchObject({ status: 200, headers: { etag: '"2"' } })
        expect((await put('"1"')).status).toBe(412)
        const removal = await api.ask('DELETE', `/llm.apiKey/${id}`, undefined, { 'if-match': '"1"' })
        expect(removal.status).toBe(412)
        expect((await put('*')).status).toBe(200)
      } else expect((await put('"1"')).status).toBe(412)
      expect((await put('1')).status).toBe(400)
      await api.remove('llm.apiKey', id)
    })

    it('documents return the active configuration, without secrets, with its sources', async () => {
      const key = newKey()
      const { id } = await api.create('llm.apiKey', { key, metadata: { name: 'seen' } })
      const effective = JSON.stringify(await api.document('effective'))
      expect(effective).toContain('seen')
      expect(effective).not.toContain(key)
      expect(await api.document('status')).toMatchObject({
        synchronized: true,
        storage: { mode: isHybrid ? 'hybrid' : 'file' },
      })
      expect(await api.document('openapi.json')).toMatchObject({ openapi: '3.1.0' })
      await api.remove('llm.apiKey', id)
    })

    it('every write leaves an audit line with requester and record, and without values', async () => {
      const key = newKey()
      const { id } = await api.create('llm.apiKey', { key })
      await api.remove('llm.apiKey', id)
      const lines = await until('both lines are in the log', () => {
        const found = gateway
          .stdout()
          .split('\n')
          .filter((line) => line.includes(id))
        return found.length >= 2 && found.map((line) => JSON.parse(line))
      })
      expect(lines).toMatchObject([
        { audit: { op: 'put', kind: 'llm.apiKey', id, address: '127.0.0.1' } },
        { audit: { op: 'remove', kind: 'llm.apiKey', id, address: '127.0.0.1' } },
      ])
      expect(gateway.stdout()).not.toContain(key)
    })
  })
})

describe.each([
  { storage: 'a file', url: undefined },
  { storage: 'SQLite', url: sqliteUrl },
])('without the sections that records need, in $storage', ({ url }) => {
  it('keys, policies of llm and of ui are refused', async () => {
    const gateway = await startGateway(stored({ mcp: { targets: [] } }, url?.()))
    const api = resourceApi(gateway)
    expect(await api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'k' } }] })).toMatchObject({
      status: 409,
      body: 'DB-backed API keys require llm.policies.apiKey',
    })
    const ui = await api.ask('PUT', '/ui.policy/cors', { value: { allowOrigins: ['*'] } })
    expect(ui).toMatchObject({
      status: 409,
      body: expect.stringMatching(
        /^(?:DB-backed UI policies require ui in the file config|ui.policy needs ui in the configuration file)$/,
      ),
    })
    if (url === undefined) return
    const llm = await api.ask('PUT', '/llm.policy/cors', { value: { allowOrigins: ['*'] } })
    expect(llm).toMatchObject({ status: 409, body: 'DB-backed LLM policies require llm in the file config' })
  })
})

it('where storage is read-only, changes are refused and reading is not', async () => {
  const gateway = await startGateway({ ...keyedEcho, config: { storage: { mode: 'readOnly' } } })
  const api = resourceApi(gateway)
  const answer = { status: 403, body: 'UI is configured as read-only' }
  expect(await api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'k' } }] })).toMatchObject(answer)
  expect(await api.ask('DELETE', '/llm.model/from-file')).toMatchObject(answer)
  expect(await api.list('llm.apiKey')).toEqual([])
})
