import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl } from '../support/browser/filled-gateway.ts'
import { freePort } from '../support/free-port.ts'
import { type GatewayConfig, startGateway } from '../support/gateway.ts'
import { call } from '../support/http-call.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'
import { resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'

/** Gateways, routes and TCP routes in the console. */

const browser = useBrowser()

async function configOf(): Promise<GatewayConfig & { port: number }> {
  const port = await freePort()
  const routes = [
    {
      name: 'health',
      matches: [{ path: { exact: '/health' } }],
      policies: { directResponse: { status: 200, body: 'ok' } },
    },
    {
      name: 'posts',
      matches: [{ path: { pathPrefix: '/' }, method: 'POST' }],
      backends: [{ host: 'localhost:9' }],
    },
  ]
  return { port, gateways: { default: { port } }, routes }
}

const storages = [
  { storage: 'a file', missing: undefined, url: async () => undefined },
  { storage: 'SQLite', missing: undefined, url: async () => sqliteUrl() },
  {
    storage: 'Postgres',
    missing: postgresMissing,
    url: async () => (await startPostgres()).createDatabase(),
  },
] as const

describe.each(storages)('in $storage', ({ missing, url, storage }) => {
  it.skipIf(missing !== undefined)('a route is created, serves, is changed and deleted', async () => {
    const { port, ...config } = await configOf()
    const gateway = await startGateway(stored(config, await url()))
    const page = await browser.open(`${consoleUrl(gateway)}/traffic/routes`)
    await page.getByRole('link', { name: 'health' }).waitFor()
    await expectAccessible(page)
    if (storage !== 'a file')
      await page
        .getByText(/file line \d+/)
        .first()
        .waitFor()
    await page.getByRole('link', { name: 'New route' }).click()
    await page.getByRole('textbox', { name: 'Name' }).first().fill('hello')
    await page.getByRole('textbox', { name: /^Path prefix/ }).fill('/hello')
    await page
      .getByRole('textbox', { name: /^Host / })
      .or(page.getByRole('textbox', { name: 'Host' }))
      .last()
      .fill('localhost:9')
    await page.getByText('Way of a request').waitFor()
    // The search for a record of the same name, and for the deleted one.
    page.expectProblem(/404/)
    await page.getByRole('button', { name: 'Create' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('pathPrefix: /hello').waitFor()
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { level: 1, name: 'hello' }).waitFor()
    expect((await call(port, '/hello', { host: 'x' })).status).toBe(503)
    await page.getByRole('link', { name: 'Test it' }).click()
    await page.getByRole('button', { name: 'Find the route' }).waitFor()
    await page.getByText('localhost:9').waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Delete' }).click()
    const confirm = page.getByRole('dialog')
    await confirm.getByRole('textbox').fill('hello')
    await confirm.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { level: 1, name: 'Routes' }).waitFor()
    expect((await call(port, '/hello', { host: 'x' })).status).toBe(404)
  })
})

it('gateways display their open listeners', async () => {
  const { port, ...config } = await configOf()
  const gateway = await startGateway(stored(config))
  const page = await browser.open(`${consoleUrl(gateway)}/traffic/gateways`)
  await page.getByRole('table', { name: 'Open listeners' }).getByText(`127.0.0.1:${port}`).waitFor()
  await expectAccessible(page)
  await page.getByRole('link', { name: 'default' }).click()
  await page.getByRole('table', { name: 'Open listeners' }).getByText(`127.0.0.1:${port}`).waitFor()
  await page.goto(`${consoleUrl(gateway)}/traffic/tcp-routes`)
  await page.getByText('No TCP route yet').waitFor()
  await expectAccessible(page)
})

it('the page of a request names its route and the reasons of others', async () => {
  const { port: _, ...config } = await configOf()
  const gateway = await startGateway(stored(config))
  const page = await browser.open(`${consoleUrl(gateway)}/traffic/explain`)
  await page.getByText('No request yet').waitFor()
  await page.getByRole('button', { name: 'Find the route' }).click()
  await page.getByText(/A host is required/).waitFor()
  await page.getByLabel(/^Host/).fill('api.example.com')
  await page.getByLabel('Path').fill('/health')
  await page.getByRole('button', { name: 'Find the route' }).click()
  await page.getByRole('link', { name: 'health' }).waitFor()
  await page.getByRole('cell', { name: 'the method must be POST' }).waitFor()
  expect(page.url()).toContain('host=api.example.com')
  await expectAccessible(page)
  await page.getByLabel('Path').fill('/none')
  await page.getByRole('button', { name: 'Find the route' }).click()
  await page.getByText(/No route matches \/none/).waitFor()
})

it('records with hostile names are displayed as text, and read-only mode offers no change', async () => {
  const { port: _, ...config } = await configOf()
  const name = '<img src=x onerror=alert(1)>\u202Egnirts 🚀'
  const routes = [
    { name, backends: [{ host: 'localhost:9' }] },
    { name: 'x'.repeat(10_000), backends: [] },
  ]
  const gateway = await startGateway({ ...config, routes, config: { storage: { mode: 'readOnly' } } })
  const page = await browser.open(`${consoleUrl(gateway)}/traffic/routes`)
  await page.getByText('<img src=x').first().waitFor()
  expect(await page.getByRole('link', { name: 'New route' }).count()).toBe(0)
  await page.getByRole('link', { name: /img src/ }).click()
  await page.getByRole('heading', { level: 1, name: /img src/ }).waitFor()
  await page
    .getByText(/readOnly|read-only/)
    .first()
    .waitFor()
  expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0)
})

it('two editors of one route choose between their changes', async () => {
  const { port: _, ...config } = await configOf()
  const gateway = await startGateway(stored(config))
  const page = await browser.open(`${consoleUrl(gateway)}/traffic/routes/health`)
  const hosts = page.getByRole('textbox', { name: 'Name' }).first()
  await hosts.waitFor()
  const api = resourceApi(gateway)
  const { value } = (await api.ask('GET', '/traffic.route/health')).body as { value: object }
  await api.ask('PUT', '/traffic.route/health', { value: { ...value, hostnames: ['theirs.example.com'] } })
  await hosts.fill('health-mine')
  page.expectProblem(/412/)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor()
  await page.getByText('theirs.example.com').first().waitFor()
  expect(readFileSync(gateway.file, 'utf8')).not.toContain('health-mine')
})
