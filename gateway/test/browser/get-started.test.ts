import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser, type WatchedPage } from '../support/browser/browser.ts'
import { consoleUrl } from '../support/browser/filled-gateway.ts'
import { startGateway } from '../support/gateway.ts'
import { programTarget } from '../support/mcp-fixtures.ts'
import { sqliteUrl, stored } from '../support/resource-api.ts'

const browser = useBrowser()

const emptyLlm = { llm: { models: [] } }

describe.each(['file', 'hybrid'] as const)('with %s storage', (mode) => {
  it('the guide leads from an empty configuration to the first call', async () => {
    const config = mode === 'file' ? { ...emptyLlm, ...ledger() } : stored(emptyLlm, sqliteUrl())
    const gateway = await startGateway(config)
    const page = await browser.open(`${consoleUrl(gateway)}/start`)
    // The form asks whether the name is free.
    page.expectProblem(/404/)
    await page.getByText('Echo', { exact: true }).click()
    await page.getByRole('button', { name: 'Connect Echo' }).click()
    await confirm(page)
    await page.getByLabel('Model name').fill('echo')
    await page.getByRole('button', { name: 'Add model' }).click()
    await confirm(page)

    // A reload resumes at the first unfinished step.
    await page.reload()
    await page.getByRole('button', { name: 'Require virtual keys' }).click()
    await confirm(page)
    await page.getByRole('button', { name: 'Create key' }).click()
    await confirm(page)
    const key = await page.getByRole('region', { name: 'virtual key' }).innerText()
    expect(key.trim()).toMatch(/^tg-\w{40}$/)
    await expectAccessible(page)
    await page.getByRole('region', { name: 'virtual key' }).waitFor()
    await page.locator('form, div').getByRole('button', { name: 'Make the first call', exact: true }).click()
    await page.getByLabel('Message').fill('Hello from the guide')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByRole('status').getByText('Hello from the guide').waitFor()
    await page.getByText('Requests have succeeded.').waitFor()

    await page.getByRole('link', { name: 'Set up a client' }).click()
    await page.getByRole('button', { name: 'OpenAI SDK' }).click()
    const python = page.getByRole('region', { name: 'Python' })
    expect(await python.innerText()).toContain(`base_url="http://localhost:${gateway.port}/v1"`)
    expect(await python.innerText()).toContain(key.trim())
  })
})

it('the guide adds an MCP server and calls one of its tools', async () => {
  const gateway = await startGateway({
    mcp: { targets: [] },
    config: { ...ledger().config, storage: { allowStdioTargets: true } },
  })
  const { cmd, args } = programTarget('files').stdio
  const page = await browser.open(`${consoleUrl(gateway)}/start?path=mcp`)
  page.expectProblem(/404/)
  await page.getByRole('radio', { name: 'Command' }).click()
  await page.getByLabel('Name').fill('files')
  await page
    .getByRole('textbox', { name: 'Command' })
    .fill([cmd, ...args].map((word) => `"${word}"`).join(' '))
  await page.getByRole('button', { name: 'Add server' }).click()
  await confirm(page)
  await page.getByText('live tools at').waitFor()
  await expectAccessible(page)
  await page.getByRole('list', { name: 'Tools' }).getByRole('button').first().click()
  await page.getByRole('button', { name: 'Call tool' }).click()
  await page.getByRole('region', { name: 'result' }).waitFor()
  await page.getByRole('link', { name: 'Open request' }).waitFor()
})

it('the guide offers no change of a read-only configuration', async () => {
  const gateway = await startGateway({ ...emptyLlm, config: { storage: { mode: 'readOnly' } } })
  const page = await browser.open(`${consoleUrl(gateway)}/start`)
  await page.getByText('Echo', { exact: true }).click()
  expect(await page.getByRole('button', { name: 'Connect Echo' }).isDisabled()).toBe(true)
})

it('the palette finds pages, actions, records and requests by keyboard', async () => {
  const model = { name: 'needle-<b>model</b>', provider: 'echo' }
  const gateway = await startGateway({ llm: { models: [model] } })
  const page = await browser.open(`${consoleUrl(gateway)}/start`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  const find = async (text: string, option: string | RegExp) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').fill(text)
    await page.getByRole('option', { name: option }).waitFor()
  }
  await find('claude code', /Client setup/)
  await expectAccessible(page)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/ui\/clients$/)
  await find('create key', /Create key/)
  await page.keyboard.press('Escape')
  await find('needle', /needle-<b>model<\/b> model/)
  await page.keyboard.press('Escape')
  await find('01a20653-4476-7000-929e-59f5cf429f97', '01a20653-4476-7000-929e-59f5cf429f97')
})

function ledger() {
  return { config: { database: { url: sqliteUrl() } } }
}

/** Accepts the comparison of a change. */
async function confirm(page: WatchedPage): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}
