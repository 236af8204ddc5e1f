import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { contentOf, entriesOf } from '../support/folder-content.ts'
import { type GatewayConfig, runTollgate, startGateway } from '../support/gateway.ts'
import { listening } from '../support/listening.ts'
import { keyedEcho, resourceApi, sqliteUrl, statusWith, stored } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

/** Storage guarantees: encryption at rest, backups, invalid settings, unavailable databases. */

const pathOf = (url: string) => url.slice('sqlite://'.length)
const secret = 'tg-canary-of-the-storage'
const encryptionKey = '0123456789abcdef'.repeat(4)

function withEncryption(url: string, key: string): GatewayConfig {
  const config = stored(keyedEcho, url)
  return { ...config, config: { ...config.config, database: { url, encryptionKey: key } } }
}

function tablesOf(file: string): unknown[] {
  const database = new DatabaseSync(file, { readOnly: true })
  const rows = database.prepare("select name from sqlite_master where type = 'table'").all()
  database.close()
  return rows.map(({ name }) => name)
}

/** All that is on disk of a database. */
function bytesOf(url: string): string {
  return contentOf(dirname(pathOf(url)))
}

describe('a SQLite database', () => {
  it('is created with its folder, for its owner only, and retains records over a restart', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(stored(keyedEcho, url))
    const made = await resourceApi(gateway).create('llm.apiKey', { key: secret })
    const folder = dirname(pathOf(url))
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const path of entriesOf(folder)) {
      const status = statSync(path)
      expect(status.mode & 0o777, path).toBe(status.isDirectory() ? 0o700 : 0o600)
    }
    await gateway.stop()
    const again = await startGateway({}, { again: gateway })
    expect(await statusWith(again, secret)).toBe(200)
    expect(await resourceApi(again).list('llm.apiKey')).toEqual([made])
  })

  it('contains nothing of a deleted record', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(stored(keyedEcho, url))
    const api = resourceApi(gateway)
    const { id } = await api.create('llm.apiKey', { key: secret })
    expect(bytesOf(url)).toContain(secret)
    await api.remove('llm.apiKey', id)
    await gateway.stop()
    expect(bytesOf(url)).not.toContain(secret)
  })

  it('has no records that send credentials of the file to hosts of their own', async () => {
    const { llm } = keyedEcho
    const file: GatewayConfig = {
      ...keyedEcho,
      llm: { ...llm, providers: [{ name: 'p', provider: 'openai', params: { apiKey: 'sk-of-file' } }] },
      mcp: { targets: [], policies: { backendAuth: { key: 'of-targets' } } },
    }
    const gateway = await startGateway(stored(file, sqliteUrl()))
    const api = resourceApi(gateway)
    const model = { name: 'm', provider: { reference: 'p' }, tls: { insecure: true } }
    const target = { name: 't', mcp: { host: 'http://127.0.0.1:9/mcp' } }
    const attempts = [
      ['llm.model', model, 'value.tls: the credential of provider'],
      ['mcp.target', target, 'value.policies.backendAuth: must be set'],
    ] as const
    for (const [kind, value, reason] of attempts)
      for (const query of ['', '?dryRun=true'])
        expect(await api.ask('PUT', `/${kind}${query}`, { resources: [{ value }] })).toMatchObject({
          status: 403,
          body: expect.stringContaining(reason),
        })
    await api.create('llm.model', { name: 'as-in-file', provider: { reference: 'p' } })
    await api.create('mcp.target', { ...target, policies: { backendAuth: { key: 'own' } } })
  })

  it('stores secrets encrypted, readable with the key only', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(withEncryption(url, encryptionKey))
    const api = resourceApi(gateway)
    await api.create('llm.apiKey', { key: secret, metadata: { name: 'in the clear' } })
    await api.create('llm.model', { name: 'm', provider: 'openai', params: { apiKey: 'sk-canary' } })
    expect(await statusWith(gateway, secret)).toBe(200)
    await gateway.stop()
    const bytes = bytesOf(url)
    expect(bytes).toContain('in the clear')
    expect(bytes).not.toContain(secret)
    expect(bytes).not.toContain('sk-canary')

    const again = await startGateway({}, { again: gateway })
    expect(await statusWith(again, secret)).toBe(200)
    expect(await resourceApi(again).list('llm.apiKey')).toMatchObject([{ value: { key: secret } }])
    await again.stop()

    // With another key the record is neither used nor lost.
    const wrong = await startGateway(withEncryption(url, 'f'.repeat(64)), { awaits: 'admin' })
    const status = await until('it listens', () => statusWith(wrong, secret).catch(() => undefined))
    expect([401, 503]).toContain(status)
    expect(JSON.stringify(await resourceApi(wrong).document('status'))).toContain('llm.apiKey')
    await wrong.stop()
    const back = await startGateway({}, { again: gateway })
    expect(await statusWith(back, secret)).toBe(200)
  })

  it('may be put in its place from a backup while the gateway runs', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(stored(keyedEcho, url))
    const api = resourceApi(gateway)
    const { id } = await api.create('llm.apiKey', { key: secret })
    const copy = `${pathOf(url)}.backup`
    const database = new DatabaseSync(pathOf(url))
    database.exec(`vacuum into '${copy}'`)
    database.close()
    await api.remove('llm.apiKey', id)
    await api.create('llm.apiKey', { key: 'tg-after-the-backup' })
    renameSync(copy, pathOf(url))
    await until('it runs the backup', async () => (await statusWith(gateway, secret)) === 200)
    expect(await statusWith(gateway, 'tg-after-the-backup')).toBe(401)
    expect((await api.list('llm.apiKey')).map((envelope) => envelope.id)).toEqual([id])
    await api.remove('llm.apiKey', id)
    expect(await statusWith(gateway, secret)).toBe(401)
  })

  const migrations = 'create table tollgate_migrations (version integer primary key, applied_at text) strict'

  it.each([
    ['is none', ['no database'.repeat(1000)]],
    ['lacks its tables', ['', migrations, 'insert into tollgate_migrations values (1, 1)']],
    ['is of a later version', ['', migrations, 'insert into tollgate_migrations values (999, 1)']],
  ])('that %s denies all requests with the reason', async (_title, [text = '', ...statements]) => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-sqlite-'))
    endAfter('test', () => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'tollgate.db')
    writeFileSync(file, text)
    if (statements.length > 0) {
      const database = new DatabaseSync(file)
      for (const statement of statements) database.exec(statement)
      database.close()
    }
    const gateway = await startGateway(stored(keyedEcho, `sqlite://${file}`), { awaits: 'admin' })
    await until('it listens', async () => (await statusWith(gateway, secret).catch(() => 0)) === 503)
    const api = resourceApi(gateway)
    expect((await api.ask('GET', '/llm.apiKey')).status).toBe(503)
    expect((await api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'k' } }] })).status).toBe(503)
    expect(await api.document('status')).toMatchObject({
      pending: 'database',
      storage: { database: { state: 'pending', lastError: expect.stringContaining(file) } },
    })
    if (statements.length === 0) expect(readFileSync(file, 'utf8')).toBe(text)
    else expect(tablesOf(file)).not.toContain('tollgate_resources')
  })

  it('that goes away leaves traffic as it is, and is not made anew', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(stored(keyedEcho, url))
    const api = resourceApi(gateway)
    await api.create('llm.apiKey', { key: secret })
    renameSync(dirname(pathOf(url)), `${dirname(pathOf(url))}-away`)
    const refused = await api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'tg-lost' } }] })
    expect(refused.status).toBe(503)
    expect(await statusWith(gateway, secret)).toBe(200)
    expect(await statusWith(gateway, 'tg-lost')).toBe(401)
    renameSync(`${dirname(pathOf(url))}-away`, dirname(pathOf(url)))
    await until('writes are stored again', async () => {
      const answer = await api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'tg-back' } }] })
      return answer.status === 200
    })
    expect(await api.list('llm.apiKey')).toHaveLength(2)
  })
})

describe.each([
  { storage: 'a file', url: undefined, status: 500, maxFileBlocks: 64 },
  { storage: 'SQLite', url: sqliteUrl, status: 422, maxFileBlocks: 1024 },
])('in $storage', ({ url, status, maxFileBlocks }) => {
  it('a gateway on a port that is taken is refused, and neither stored nor half opened', async () => {
    const server = createServer()
    const port = await listening(server)
    endAfter('test', () => void server.close())
    const gateway = await startGateway(stored(keyedEcho, url?.()))
    const api = resourceApi(gateway)
    const value = { name: 'taken', port }
    const answer = await api.ask('PUT', '/traffic.gateway', { resources: [{ value }] })
    expect(answer).toMatchObject({ status, body: expect.stringContaining(String(port)) })
    expect((await api.ask('GET', '/traffic.gateway/taken')).status).toBe(404)
    expect(JSON.stringify(await api.document('effective'))).not.toContain('taken')
    await api.create('llm.apiKey', { key: secret })
    expect(await statusWith(gateway, secret)).toBe(200)
    expect(await gateway.status()).toMatchObject({ synchronized: true })
  })

  it('a full disk refuses new records, retains acknowledged ones, and serves', async () => {
    const gateway = await startGateway(stored(keyedEcho, url?.()), { maxFileBlocks })
    const api = resourceApi(gateway)
    const answered: string[] = []
    const refused = await until('a write is refused', async () => {
      const key = `tg-${answered.length}`
      const value = { key, metadata: { padding: 'x'.repeat(5_000) } }
      const answer = await api.ask('PUT', '/llm.apiKey', { resources: [{ value }] })
      if (answer.status !== 200) return answer
      answered.push(key)
      return undefined
    })
    expect([500, 503]).toContain(refused.status)
    expect(answered.length).toBeGreaterThan(2)
    expect(await statusWith(gateway, `tg-${answered.length}`)).toBe(401)
    for (const key of answered) expect(await statusWith(gateway, key)).toBe(200)
    await gateway.stop()
    const again = await startGateway({}, { again: gateway })
    for (const key of answered) expect(await statusWith(again, key)).toBe(200)
    await resourceApi(again).create('llm.apiKey', { key: 'tg-with-room' })
  })

  it('programs, files, identities and metadata addresses are refused unless the file allows them', async () => {
    const ofAzure = { azureResourceName: 'a', azureResourceType: 'openAI', baseUrl: 'http://127.0.0.1:1' }
    const gateway = await startGateway(stored(keyedEcho, url?.(), { allowFilePaths: true }))
    const api = resourceApi(gateway)
    const attempts = [
      ['mcp.target', { name: 't', stdio: { cmd: 'sh', args: ['-c', 'true'] } }, 'allowStdioTargets'],
      ['traffic.route', { name: 'r', backends: [{ host: '169.254.169.254:80' }] }, 'allowMetadataAddresses'],
      ['llm.model', { name: 'm', provider: 'azure', params: ofAzure }, 'allowMachineIdentity'],
    ] as const
    for (const [kind, value, setting] of attempts) {
      const answer = await api.ask('PUT', `/${kind}`, { resources: [{ value }] })
      expect(answer).toMatchObject({ status: 403, body: expect.stringContaining(setting) })
    }
    writeFileSync(join(dirname(gateway.file), 'key'), 'sk-in-a-file')
    const params = { apiKey: { file: join(dirname(gateway.file), 'key') } }
    await api.create('llm.model', { name: 'm', provider: 'openai', params })
  })
})

describe('settings that cannot work', () => {
  it.each([
    [{ storage: { mode: 'hybrid' } }, 'config.storage.mode=hybrid requires config.database.url'],
    [
      { storage: { mode: 'hybrid' }, database: { url: 'postgres://u@127.0.0.1/db', maxConnections: 1 } },
      'config.database.maxConnections must be at least 2 for PostgreSQL hybrid storage',
    ],
    [{ database: { encryptionKey: 'short' } }, 'expected 32 bytes'],
    [
      { database: { url: 'postgress://u:p@h/db' } },
      'unsupported scheme `postgress:`, did you mean `postgres://`?',
    ],
    [{ storage: { mode: 'both' } }, 'config.storage.mode'],
  ])('%j is a mistake of the configuration', async (config, message) => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-mistake-'))
    endAfter('test', () => rmSync(folder, { recursive: true }))
    const file = join(folder, 'config.yaml')
    writeFileSync(file, JSON.stringify({ ...keyedEcho, config }))
    const run = await runTollgate(['--validate-only', '-f', file])
    expect(run.code).toBe(1)
    expect(run.stderr).toContain(message)
  })
})
