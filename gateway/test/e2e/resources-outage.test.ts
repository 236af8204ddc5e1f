import { beforeAll, describe, expect, it } from 'vitest'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { metricValue } from '../support/metrics.ts'
import { postgresMissing, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { keyedEcho, resourceApi, statusWith, stored } from '../support/resource-api.ts'
import { until, within } from '../support/wait.ts'

/** A database that hangs: it accepts connections and answers nothing. */

let postgres: TestPostgres

beforeAll(async () => {
  if (postgresMissing === undefined) postgres = await startPostgres()
})

function withFileKeys(url: string, ...keys: string[]): GatewayConfig {
  const policies = { apiKey: { mode: 'strict', keys: keys.map((key) => ({ key })) } }
  return stored({ llm: { ...keyedEcho.llm, policies } }, url)
}

describe.skipIf(postgresMissing !== undefined)('while Postgres hangs', () => {
  it('writes fail fast, reloads do not wait for them, and the outage is reported', async () => {
    const proxy = await startPostgresProxy(postgres.port)
    const url = proxy.through(await postgres.createDatabase())
    const gateway = await startGateway(withFileKeys(url, 'tg-in-file', 'tg-stays'))
    const api = resourceApi(gateway)
    await api.create('llm.apiKey', { key: 'tg-stored' })
    expect(metricValue(await gateway.metrics(), 'tollgate_config_database_connected')).toBe(1)

    proxy.hangs = true
    const write = (key: string) => api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key } }] })
    let isOneRefused = false
    const queue = async (key: string) => {
      const answer = await write(key)
      isOneRefused = true
      return answer
    }
    const queued = Promise.all(Array.from({ length: 10 }, (_, index) => queue(`tg-queued-${index}`)))
    gateway.write(withFileKeys(url, 'tg-stays'))
    await until('the removed key is refused', async () => (await statusWith(gateway, 'tg-in-file')) === 401)
    expect(isOneRefused).toBe(false)

    await until(
      'the outage is reported',
      async () => metricValue(await gateway.metrics(), 'tollgate_config_database_connected') === 0,
      10_000,
    )
    expect(metricValue(await gateway.metrics(), 'tollgate_config_synchronized')).toBe(0)
    expect(await gateway.status()).toMatchObject({
      synchronized: false,
      lastError: expect.stringContaining('the Postgres database cannot be used'),
    })
    const lostAt = performance.now()
    const refusals = await Promise.all(Array.from({ length: 10 }, (_, index) => write(`tg-late-${index}`)))
    expect(new Set(refusals.map(({ status }) => status))).toEqual(new Set([503]))
    // Each would wait 15 s for the database.
    expect(performance.now() - lostAt).toBeLessThan(10_000)
    const statuses = (await within('queued writes are refused', queued, 40_000)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([503]))
    expect(await statusWith(gateway, 'tg-stored')).toBe(200)

    proxy.hangs = false
    proxy.cut()
    await until(
      'the end of the outage is reported',
      async () => metricValue(await gateway.metrics(), 'tollgate_config_database_connected') === 1,
      15_000,
    )
    expect(await gateway.status()).toMatchObject({ synchronized: true })
    await api.create('llm.apiKey', { key: 'tg-after' })
    expect(await statusWith(gateway, 'tg-after')).toBe(200)
    expect(await statusWith(gateway, 'tg-in-file')).toBe(401)
  }, 120_000)

  it('a change that is not answered delays a reload by seconds at most', async () => {
    const proxy = await startPostgresProxy(postgres.port)
    const url = proxy.through(await postgres.createDatabase())
    const gateway = await startGateway(withFileKeys(url, 'tg-in-file', 'tg-stays'))
    const api = resourceApi(gateway)
    await api.create('llm.apiKey', { key: 'tg-stored' })
    proxy.hangsAt = 'insert into tollgate_resources'
    const write = api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'tg-unknown' } }] })
    await until('the change hangs', () => proxy.hangs)
    const startedAt = performance.now()
    gateway.write(withFileKeys(url, 'tg-stays'))
    await until(
      'the removed key is refused',
      async () => (await statusWith(gateway, 'tg-in-file')) === 401,
      10_000,
    )
    expect(performance.now() - startedAt).toBeLessThan(14_000)
    expect((await write).status).toBe(503)
    proxy.hangsAt = undefined
    proxy.hangs = false
    proxy.cut()
    await until(
      'writes are stored again',
      async () => {
        const answer = await api.ask('PUT', '/llm.apiKey', { resources: [{ value: { key: 'tg-after' } }] })
        return answer.status === 200
      },
      15_000,
    )
  }, 120_000)
})
