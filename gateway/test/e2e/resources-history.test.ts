import { beforeAll, describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { keyedEcho, resourceApi, sqliteUrl, statusWith, stored } from '../support/resource-api.ts'

// The history of the configuration in the real process, on both databases.

let postgres: TestPostgres

beforeAll(async () => {
  if (postgresMissing === undefined) postgres = await startPostgres()
})

const databases = [
  { database: 'Postgres', missing: postgresMissing, url: () => postgres.createDatabase() },
  { database: 'SQLite', missing: undefined, url: async () => sqliteUrl() },
] as const

type Target = { readonly adminPort: number }

async function ask({ adminPort }: Target, method: string, path: string, headers = {}) {
  const host = `127.0.0.1:${adminPort}`
  const { status, text } = await call(adminPort, `/api/config/history${path}`, { method, host, headers })
  return { status, body: JSON.parse(text) }
}

async function startWith(url: string, encryptionKey?: string) {
  const config = stored(keyedEcho, url)
  const database = { url, ...(encryptionKey === undefined ? {} : { encryptionKey }) }
  const gateway = await startGateway({ ...config, config: { ...config.config, database } })
  return { gateway, api: resourceApi(gateway) }
}

describe.each(databases)('the history in $database', ({ missing, url }) => {
  it.skipIf(missing !== undefined)(
    'restores a deleted key with its secret, if secrets are encrypted',
    async () => {
      const { gateway, api } = await startWith(await url(), 'a1'.repeat(32))
      const { id } = await api.create('llm.apiKey', { key: 'tg-canary-history-1' })
      expect(await statusWith(gateway, 'tg-canary-history-1')).toBe(200)
      await api.remove('llm.apiKey', id)
      expect(await statusWith(gateway, 'tg-canary-history-1')).toBe(401)
      const { body } = await ask(gateway, 'GET', '?kind=llm.apiKey')
      expect(body.records).toMatchObject([
        { id: 2, operation: 'delete', resourceId: id, who: { address: '127.0.0.1' } },
        { id: 1, operation: 'create', resourceId: id },
      ])
      expect((await ask(gateway, 'POST', '/2/revert')).status).toBe(200)
      expect(await statusWith(gateway, 'tg-canary-history-1')).toBe(200)
      const shown = await Promise.all(['', '/1', '/2', '/3'].map((path) => ask(gateway, 'GET', path)))
      expect(JSON.stringify(shown)).not.toContain('canary')
      expect(shown[3]?.body).toMatchObject({ operation: 'create', origin: 'revert', reverts: 2 })
    },
  )

  it.skipIf(missing !== undefined)('refuses to restore a deleted key without encryption', async () => {
    const { gateway, api } = await startWith(await url())
    const { id } = await api.create('llm.apiKey', { key: 'tg-canary-history-2' })
    await api.remove('llm.apiKey', id)
    expect(await ask(gateway, 'POST', '/2/revert')).toMatchObject({
      status: 409,
      body: expect.stringContaining('the history does not contain the secret key'),
    })
    expect(await statusWith(gateway, 'tg-canary-history-2')).toBe(401)
  })
})

it('names version control in file mode', async () => {
  const gateway = await startGateway(stored(keyedEcho))
  expect(await ask(gateway, 'GET', '')).toMatchObject({
    status: 404,
    body: expect.stringContaining('use version control for the file'),
  })
})
