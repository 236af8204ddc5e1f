import { readFileSync, writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl } from '../support/browser/filled-gateway.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'
import { resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'
import { expectBelow } from '../support/time-bound.ts'
import { until } from '../support/wait.ts'

/** Tools of the console: expressions, raw configuration, history. */

const browser = useBrowser()

const config: GatewayConfig = { llm: { models: [{ name: 'first', provider: 'echo' }] } }

const yaml = (gateway: Gateway) => readFileSync(gateway.file, 'utf8')

/** Replaces the content of the editor of the file, as a paste does. */
async function replaceText(page: Page, change: (text: string) => string, gateway: Gateway): Promise<void> {
  await page.locator('.cm-content[aria-label^="Configuration file"]').click()
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.insertText(change(yaml(gateway)))
}

describe('the raw configuration', () => {
  it('is checked, compared and saved', async () => {
    const gateway = await startGateway(stored(config))
    const page = await browser.open(`${consoleUrl(gateway)}/tools/configuration`)
    await replaceText(page, (text) => text.replace('"echo"', '"nobody"'), gateway)
    await page
      .getByText(/unknown provider "nobody"/)
      .first()
      .waitFor()
    await expectAccessible(page)
    expect(yaml(gateway)).not.toContain('nobody')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText(`# of the console\n${yaml(gateway).replace('"first"', '"renamed"')}`)
    await page.getByRole('button', { name: 'Review and save' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('# of the console').waitFor()
    await expectAccessible(page)
    await dialog.getByText('What changes (2)').click()
    await dialog.getByText('llm.models[0]').first().waitFor()
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved and active').first().waitFor()
    expect(yaml(gateway)).toMatch(/^# of the console\n/)
    const models = await (await fetch(`${gateway.url}/v1/models`)).json()
    expect(models).toMatchObject({ data: [{ id: 'renamed' }] })
    await page.getByRole('tab', { name: 'Active' }).click()
    await page
      .getByRole('textbox', { name: /Active configuration/ })
      .getByText('renamed')
      .waitFor()
  })

  it('of two editors at once has the changes of both', async () => {
    const gateway = await startGateway(stored(config))
    const page = await browser.open(`${consoleUrl(gateway)}/tools/configuration`)
    await replaceText(page, (text) => `# mine\n${text}`, gateway)
    const { revision } = await gateway.status()
    writeFileSync(gateway.file, yaml(gateway).replace('"first"', '"theirs"'))
    await until('the other change is active', async () => (await gateway.status()).revision > revision)
    page.expectProblem(/412/)
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('heading', { name: 'The file was changed meanwhile' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Keep both' }).click()
    await page.getByRole('heading', { name: 'Save the configuration file?' }).waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('Saved and active').first().waitFor()
    expect(yaml(gateway)).toMatch(/^# mine\n[\s\S]*"theirs"/)
  })

  it.each([
    ['hybrid', () => stored(config, sqliteUrl()), 'cannot be changed through the API in hybrid mode'],
    [
      'read-only',
      () => ({ ...config, config: { storage: { mode: 'readOnly' } } }),
      'UI is configured as read-only',
    ],
  ] as const)('is not saved in %s mode', async (_mode, options, reason) => {
    const gateway = await startGateway(options())
    const page = await browser.open(`${consoleUrl(gateway)}/tools/configuration`)
    await page.getByText(reason).first().waitFor()
    await page.getByRole('textbox', { name: /Configuration file/ }).waitFor()
    expect(await page.getByRole('button', { name: 'Review and save' }).count()).toBe(0)
    await expectAccessible(page)
  })

  it('takes each key in a text of 2,000 lines without delay', async () => {
    const models = Array.from({ length: 480 }, (_, at) => ({ name: `model-${at}`, provider: 'echo' }))
    const gateway = await startGateway(stored({ llm: { models } }))
    const page = await browser.open(`${consoleUrl(gateway)}/tools/configuration`)
    const editor = page.locator('.cm-content[aria-label^="Configuration file"]')
    await editor.waitFor()
    expect(yaml(gateway).split('\n').length).toBeGreaterThan(1_900)
    await editor.click()
    await page.keyboard.press('ControlOrMeta+End')
    await page.keyboard.press('Enter')
    const keys = 60
    const text = '# a comment of the person who edits this file now '.padEnd(keys, 'x')
    // CPU time of the page, without the waits of a busy machine.
    await expectBelow(50, async () => (await taskTime(page, () => page.keyboard.type(text))) / keys)
  })
})

/** CPU time of the main thread of a page during an action, in milliseconds. */
async function taskTime(page: Page, action: () => Promise<void>): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const read = async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000
  }
  const before = await read()
  await action()
  const spent = (await read()) - before
  await session.detach()
  return spent
}

const databases = [
  { database: 'SQLite', missing: undefined, url: async () => sqliteUrl() },
  {
    database: 'Postgres',
    missing: postgresMissing,
    url: async () => (await startPostgres()).createDatabase(),
  },
] as const

describe.each(databases)('the history in $database', ({ missing, url }) => {
  it.skipIf(missing !== undefined)('displays changes and reverts one', async () => {
    const gateway = await startGateway(stored(config, await url()))
    const api = resourceApi(gateway)
    await api.create('llm.model', { name: 'second', provider: 'echo' })
    const value = { name: 'second', provider: 'echo', visibility: 'internal' }
    await api.ask('PUT', '/llm.model/second', { value })
    await api.create('llm.provider', { name: 'other', provider: 'echo' })
    const page = await browser.open(`${consoleUrl(gateway)}/tools/history`)
    await page.getByRole('cell', { name: /other/ }).waitFor()
    await expectAccessible(page)
    await page.getByLabel('Kind').selectOption('llm.model')
    await page.getByRole('cell', { name: /other/ }).waitFor({ state: 'detached' })
    expect(page.url()).toContain('kind=llm.model')
    await page.getByRole('row', { name: /changed/ }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('visibility: internal').waitFor()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Revert' }).click()
    await page
      .getByRole('dialog', { name: /Revert this change/ })
      .getByRole('button', { name: 'Revert' })
      .click()
    await page
      .getByText(/second is as it was before/)
      .first()
      .waitFor()
    const [record] = (await api.list('llm.model')).filter(({ value: stored }) => stored['name'] === 'second')
    expect(record?.value).toEqual({ name: 'second', provider: 'echo' })
    await page.getByRole('row', { name: /revert/ }).waitFor()
  })
})

it('the history of a file is that of version control', async () => {
  const gateway = await startGateway(stored(config))
  const page = await browser.open(`${consoleUrl(gateway)}/tools/history`)
  await page.getByText('The file has no history here').waitFor()
  await expectAccessible(page)
})

describe('the expression playground', () => {
  it('evaluates while typing, over samples and over edited facts', async () => {
    const gateway = await startGateway(config)
    const page = await browser.open(`${consoleUrl(gateway)}/tools/cel?scope=llm`)
    const expression = page.locator('.cm-content[aria-label^="Expression"]')
    await page.getByText('true', { exact: true }).waitFor()
    await expression.click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText('llmRequest.max_tokens + 1')
    await page.getByRole('region', { name: 'Value' }).getByText('257').waitFor()
    await page.keyboard.press('Escape')
    await expectAccessible(page)
    expect(page.url()).toContain('expression=llmRequest.max_tokens')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText('llmRequst.model')
    await page
      .getByText(/unknown variable "llmRequst"; did you mean "llmRequest"/)
      .first()
      .waitFor()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText('llmRequest.model')
    await page.locator('.cm-content[aria-label^="Facts as JSON"]').click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.insertText('{"llmRequest": {"model": "<script>alert(1)</script> \u202Eabc"}}')
    await page.getByRole('region', { name: 'Value' }).getByText('<script>').waitFor()
    await page.getByLabel('Place of the expression').selectOption('mcpItem')
    await page.getByRole('button', { name: 'Read-only tools' }).click()
    await page.getByText('false', { exact: true }).waitFor()
  })

  it('has the facts of a recorded request', async () => {
    const gateway = await startGateway({ ...config, config: { database: { url: sqliteUrl() } } })
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'first', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    await reply.text()
    const id = reply.headers.get('x-request-id') ?? ''
    await until('the request is recorded', async () => {
      const found = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/requests/${id}`)
      await found.text()
      return found.status === 200
    })
    const page = await browser.open(`${consoleUrl(gateway)}/tools/cel?scope=llm&expression=llm.requestModel`)
    await page.getByLabel('Id of a recorded request').fill(id)
    await page.getByRole('button', { name: 'Use its facts' }).click()
    await page.getByRole('region', { name: 'Value' }).getByText('"first"').waitFor()
    await page.getByText(/Not recorded: .*jwt/).waitFor()
  })
})
