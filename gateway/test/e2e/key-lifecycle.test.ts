import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { connectClient } from '../support/mcp-clients.ts'
import { programTarget, startMcpGateway } from '../support/mcp-fixtures.ts'
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

/** Virtual keys from creation to their end, for every storage. */

const storages = [
  { storage: 'file', missing: undefined, url: async () => undefined },
  { storage: 'SQLite', missing: undefined, url: async () => sqliteUrl() },
  {
    storage: 'Postgres',
    missing: postgresMissing,
    url: async () => (await startPostgres()).createDatabase(),
  },
] as const

type Key = Record<string, unknown> & { id: string; key: string }

describe.each(storages)('virtual keys in $storage', ({ storage, missing, url }) => {
  describe.skipIf(missing !== undefined)('by HTTP', () => {
    let gateway: Gateway
    let api: ResourceApi
    let databaseUrl: string | undefined
    const secrets: string[] = []

    beforeAll(async () => {
      databaseUrl = await url()
      gateway = await startGateway(stored(keyedEcho, databaseUrl), { lifetime: 'file' })
      api = resourceApi(gateway)
    })

    async function ask(method: string, target: string, body?: object) {
      const answer = await call(gateway.adminPort, target, {
        method,
        host: `127.0.0.1:${gateway.adminPort}`,
        ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: JSON.parse(answer.text) as Key }
    }

    async function create(value: object): Promise<Key> {
      const { body } = await api.ask('PUT', '/llm.apiKey', { resources: [{ value }] })
      const [created] = (body as { resources: Key[] }).resources
      if (created === undefined) throw new Error(JSON.stringify(body))
      secrets.push(created.key)
      return created
    }

    async function rotate(id: string, overlap: string): Promise<string> {
      const { status, body } = await ask('POST', `/api/keys/${id}/rotate`, { overlap })
      expect(status, JSON.stringify(body)).toBe(200)
      expect(body.id).toBe(id)
      secrets.push(body.key)
      return body.key
    }

    it('are generated, used and listed', async () => {
      const { id, key } = await create({ metadata: { name: 'generated' } })
      expect(key).toMatch(/^tg-[A-Za-z0-9]{40}$/)
      expect(await statusWith(gateway, key)).toBe(200)
      const { body } = await ask('GET', '/api/keys?search=generated')
      expect(body['keys']).toEqual([expect.objectContaining({ id, name: 'generated', state: 'active' })])
      if (storage === 'file') expect((await ask('GET', `/api/keys/${id}`)).body['lastUsedAt']).toBeUndefined()
      else {
        const used = await until('the ledger has the request', async () => {
          const read = (await ask('GET', `/api/keys/${id}`)).body
          return read['lastUsedAt'] !== undefined && read
        })
        expect(used['usage']).toMatchObject({ requests: 1, errors: 0 })
      }
    })

    it('keep their id, and for an overlap their earlier secret, over a rotation', async () => {
      const { id, key: first } = await create({ metadata: { name: 'rotated' } })
      const second = await rotate(id, '1h')
      expect(await Promise.all([first, second].map((key) => statusWith(gateway, key)))).toEqual([200, 200])
      const lines = await until('both requests are in the log', () => {
        const own = gateway.requests().filter((line) => line['keyId'] === id)
        return own.length >= 2 && own
      })
      expect(lines.map((line) => line['status'])).toEqual([200, 200])
      const third = await rotate(id, '0')
      const all = [first, second, third].map((key) => statusWith(gateway, key))
      expect(await Promise.all(all)).toEqual([401, 401, 200])
    })

    it('count against their limit over a rotation', async () => {
      const { id, key } = await create({ limits: [{ requests: 2, unit: 'Hours' }] })
      expect(await statusWith(gateway, key)).toBe(200)
      const next = await rotate(id, '1h')
      expect(await statusWith(gateway, next)).toBe(200)
      expect(await statusWith(gateway, next)).toBe(429)
      expect(await statusWith(gateway, key)).toBe(429)
      const { keys } = (await ask('GET', '/api/limits')).body as unknown as { keys: { fullest: object[] } }
      expect(keys.fullest).toContainEqual(expect.objectContaining({ keyId: id, remaining: 0 }))
    })

    it('end when they expire, without a change of the configuration', async () => {
      const expiresAt = new Date(Date.now() + 2_500).toISOString()
      const { id, key } = await create({ expiresAt })
      expect(await statusWith(gateway, key)).toBe(200)
      await until('the key has expired', async () => (await statusWith(gateway, key)) === 401)
      expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt))
      expect((await ask('GET', `/api/keys/${id}`)).body['state']).toBe('expired')
      const refused = () => gateway.requests().filter((line) => line['status'] === 401)
      await until('the reason is in the log', () =>
        refused().some((line) => line['refusedBy'] === `api-key: expired key ${id}`),
      )
    })

    it('may be disabled', async () => {
      const key = 'tg-disabled-later'
      const { id } = await api.create('llm.apiKey', { key })
      expect(await statusWith(gateway, key)).toBe(200)
      const value = { key, disabled: true }
      expect((await api.ask('PUT', `/llm.apiKey/${id}`, { value })).status).toBe(200)
      expect(await statusWith(gateway, key)).toBe(401)
      expect((await ask('GET', '/api/keys?state=disabled')).body['keys']).toHaveLength(1)
    })

    it('appear in no log, metric, list, history or file', async () => {
      expect(secrets.length).toBeGreaterThan(5)
      const targets = [
        '/api/keys?limit=1000',
        '/api/config/resources?reveal=true',
        '/api/config/effective',
        '/api/config/status',
        '/api/limits',
        ...(storage === 'file' ? [] : ['/api/config/history']),
      ]
      const read = await Promise.all(targets.map((target) => ask('GET', target)))
      const texts = [
        gateway.stdout(),
        gateway.stderr(),
        await gateway.metrics(),
        JSON.stringify(read),
        readFileSync(gateway.file, 'latin1'),
        ...(storage === 'SQLite' ? filesBeside(databaseUrl ?? '') : []),
      ]
      for (const secret of secrets) for (const text of texts) expect(text.includes(secret)).toBe(false)
      expect(texts.join('')).toContain('rotated')
    })
  })
})

describe('allowed targets of a key', () => {
  const record = (key: string, allowedTargets?: string[]) => ({ key, allowedTargets })
  const keys = [record('tg-one', ['one']), record('tg-both'), record('tg-none', [])]
  const policies = { apiKey: { keys } }
  const client = (gateway: Gateway, key: string) =>
    connectClient('SDK 2', gateway.mcpUrl, { headers: { authorization: `Bearer ${key}` } })

  it('restrict lists and calls of a federation', async () => {
    const targets = [programTarget('one', '--tools-only'), programTarget('two', '--tools-only')]
    const gateway = await startMcpGateway(() => ({ targets, policies }))
    const all = await (await client(gateway, 'tg-both')).tools()
    expect(all.some((name) => name.startsWith('two_'))).toBe(true)
    const restricted = await client(gateway, 'tg-one')
    expect(await restricted.tools()).toEqual(all.filter((name) => name.startsWith('one_')))
    await expect(restricted.call(all.find((name) => name.startsWith('two_')) ?? '')).rejects.toThrow(/nknown/)
    await expect(client(gateway, 'tg-none')).rejects.toThrow()
    await gateway.stop()
  })

  it('refuse a single target', async () => {
    const gateway = await startMcpGateway(() => ({ targets: [programTarget('two')], policies }))
    await expect(client(gateway, 'tg-one')).rejects.toThrow()
    const refused = await until('the refusal is in the log', () =>
      gateway.requests().find((line) => line['status'] === 403),
    )
    expect(refused['refusedBy']).toBe('api-key: target not allowed')
    expect((await (await client(gateway, 'tg-both')).tools()).length).toBeGreaterThan(0)
  })
})

/** Contents of all files of a SQLite database and its spool. */
function filesBeside(url: string): string[] {
  const folder = dirname(url.replace('sqlite://', ''))
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.flatMap((entry) =>
    entry.isFile() ? [readFileSync(join(entry.parentPath, entry.name), 'latin1')] : [],
  )
}
