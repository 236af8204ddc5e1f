import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { contentOf } from '../support/folder-content.ts'
import { freePort } from '../support/free-port.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { keyedEcho, resourceApi, sqliteUrl, statusWith, stored } from '../support/resource-api.ts'
import { until } from '../support/wait.ts'

/** Encryption at rest with other keys: one that does not fit, and two during a rotation. */

const [first, second, third] = ['1', '2', '3'].map((digit) => digit.repeat(64))

function withKeys(url: string, database: object): GatewayConfig {
  const policies = { apiKey: { mode: 'strict', keys: [{ key: 'tg-in-file' }] } }
  const config = stored({ llm: { ...keyedEcho.llm, policies } }, url)
  return { ...config, config: { ...config.config, database: { url, ...database } } }
}

async function fill(gateway: Gateway): Promise<void> {
  const api = resourceApi(gateway)
  await api.create('llm.apiKey', { key: 'tg-stored' })
  await api.create('llm.model', { name: 'with-key', provider: 'openai', params: { apiKey: 'sk-canary' } })
  await api.create('llm.policy', {
    name: 'authorization',
    rules: [{ deny: 'llm.requestModel == "forbidden"' }, { allow: 'true' }],
  })
  await api.create('llm.model', { name: 'forbidden', provider: 'echo' })
}

const problemsOf = async (gateway: Gateway): Promise<string[]> => {
  const status = JSON.parse(JSON.stringify(await resourceApi(gateway).document('status')))
  return status.storage.database.problems.map(({ kind }: { kind: string }) => kind).toSorted()
}

describe('a gateway with another encryption key', () => {
  it('serves keys of the file under all rules, and can delete records that it cannot decrypt', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(withKeys(url, { encryptionKey: first }))
    await fill(gateway)
    expect(await statusWith(gateway, 'tg-stored')).toBe(200)
    expect(await statusWith(gateway, 'tg-in-file', 'forbidden')).toBe(403)
    await gateway.stop()

    const other = await startGateway(withKeys(url, { encryptionKey: second }))
    const api = resourceApi(other)
    expect(await statusWith(other, 'tg-in-file')).toBe(200)
    expect(await statusWith(other, 'tg-in-file', 'forbidden')).toBe(403)
    expect(await statusWith(other, 'tg-stored')).toBe(401)
    expect(await problemsOf(other)).toEqual(['llm.apiKey', 'llm.model'])
    expect((await api.list('llm.model')).map(({ value }) => value['name'])).toEqual(['forbidden'])
    expect((await api.ask('GET', '/llm.model/with-key')).status).toBe(404)
    const status = JSON.parse(JSON.stringify(await api.document('status')))
    for (const { kind, id } of status.storage.database.problems) await api.remove(kind, id)
    expect(await problemsOf(other)).toEqual([])
    await api.create('llm.apiKey', { key: 'tg-anew' })
    expect(await statusWith(other, 'tg-anew')).toBe(200)
    await other.stop()
  })

  it('may replace a record that it cannot decrypt', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(withKeys(url, { encryptionKey: first }))
    await fill(gateway)
    await gateway.stop()
    const other = await startGateway(withKeys(url, { encryptionKey: second }))
    const api = resourceApi(other)
    const value = { name: 'with-key', provider: 'echo' }
    expect((await api.ask('PUT', '/llm.model/with-key', { value })).status).toBe(200)
    expect(await statusWith(other, 'tg-in-file', 'with-key')).toBe(200)
    expect(await problemsOf(other)).toEqual(['llm.apiKey'])
  })
})

describe('secrets at rest', () => {
  it('include credentials in addresses of MCP targets and in header modifiers', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(withKeys(url, { encryptionKey: first }))
    const api = resourceApi(gateway)
    await api.create('mcp.target', {
      name: 'target',
      mcp: { host: 'https://127.0.0.1:9/mcp?api_key=canary-query' },
    })
    await api.create('traffic.gateway', { name: 'web', port: await freePort() })
    const modifier = { set: { authorization: 'Bearer canary-set' }, add: { 'x-api-key': 'canary-add' } }
    await api.create('traffic.route', {
      name: 'route',
      gateways: 'web',
      backends: [{ host: '127.0.0.1:9' }],
      policies: { requestHeaderModifier: modifier },
    })
    const target = JSON.stringify(await api.ask('GET', '/mcp.target/target?reveal=true'))
    expect(target).toContain('canary-query')
    await gateway.stop()
    const folder = dirname(url.slice('sqlite://'.length))
    const bytes = contentOf(folder)
    expect(bytes).toContain('requestHeaderModifier')
    expect(bytes.match(/canary-[a-z]+/g) ?? []).toEqual([])
    // Without the key, neither blocks the rest.
    const other = await startGateway(withKeys(url, { encryptionKey: second }))
    expect(await statusWith(other, 'tg-in-file')).toBe(200)
    expect(await problemsOf(other)).toEqual(['mcp.target', 'traffic.route'])
  })
})

describe('a rotation of the encryption key', () => {
  it('needs the previous key until all records are encrypted with the new one', async () => {
    const url = sqliteUrl()
    const gateway = await startGateway(withKeys(url, { encryptionKey: first }))
    await fill(gateway)
    await gateway.stop()

    const both = await startGateway(
      withKeys(url, { encryptionKey: second, previousEncryptionKeys: [third, first] }),
    )
    expect(await statusWith(both, 'tg-stored')).toBe(200)
    expect(await problemsOf(both)).toEqual([])
    await until('the records are encrypted anew', () => both.stdout().includes('"records":2'))
    expect(both.stdout()).toContain('encrypted with the current one')
    await both.stop()

    const after = await startGateway(withKeys(url, { encryptionKey: second }))
    expect(await statusWith(after, 'tg-stored')).toBe(200)
    expect(await problemsOf(after)).toEqual([])
    await after.stop()
  })
})
