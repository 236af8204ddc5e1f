import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { expectAccessible, expectNoSideScroll } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, type FilledGateway, startFilledGateway } from '../support/browser/filled-gateway.ts'

// Virtual keys in the console: creation with one-time display, rotation, state, deletion.

const browser = useBrowser()

const hostileName = `<img src=x onerror="alert(1)"> \u202Eمفتاح 🔑`

/** Status of a chat completion with a key. */
async function statusWith({ url }: FilledGateway, key: string, model = 'echo'): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await response.text()
  return response.status
}

/** Reads the key that is displayed once, and closes the dialog. */
async function takeKey(page: Page): Promise<string> {
  const key = (await page.getByTestId('new-key').textContent()) ?? ''
  expect(key).toMatch(/^tg-[A-Za-z0-9]{40}$/)
  await page.keyboard.press('Escape')
  expect(await page.getByTestId('new-key').isVisible()).toBe(true)
  await page.getByLabel('I have stored the key').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByTestId('new-key').waitFor({ state: 'detached' })
  return key
}

async function confirm(page: Page, button: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

describe.each([
  ['a file', 0],
  ['a database', 2],
])('keys in %s', (_, keys) => {
  it('are created, displayed once, rotated, disabled and deleted', async () => {
    const gateway = await startFilledGateway({ keys, rows: 0 })
    const page = await browser.open(`${consoleUrl(gateway)}/llm/keys`)
    await page.getByRole('link', { name: 'New key' }).click()
    await page.getByLabel('Name', { exact: true }).fill(hostileName)
    await page.getByLabel('User', { exact: true }).fill('grace')
    await page.getByRole('radiogroup', { name: 'Models' }).getByText('Selected').click()
    await page.getByLabel('Add to Models').fill('ech*')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Add limit' }).click()
    await page.getByRole('button', { name: 'Add budget' }).click()
    await page.getByRole('button', { name: 'Review and create' }).click()
    await page.getByText('Enter an amount above 0.').waitFor()
    await page.getByLabel('Amount').last().fill('25')
    await page.getByRole('button', { name: 'Review and create' }).click()
    await page.getByRole('dialog').getByText('allowedModels').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    const first = await takeKey(page)
    await page.getByRole('heading', { level: 1, name: hostileName }).waitFor()
    expect([await statusWith(gateway, first), await statusWith(gateway, first, 'gpt-5')]).toEqual([200, 403])

    await page.getByRole('button', { name: 'Rotate' }).click()
    await page.getByLabel('The current secret').selectOption('1h')
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const second = await takeKey(page)
    expect([await statusWith(gateway, first), await statusWith(gateway, second)]).toEqual([200, 200])
    await page.getByText('valid until').first().waitFor()
    expect(await page.content()).not.toContain(second)

    await page.getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('dialog').getByText('disabled: true').waitFor()
    await confirm(page, 'Save')
    await page.getByRole('button', { name: 'Enable' }).waitFor()
    expect([await statusWith(gateway, first), await statusWith(gateway, second)]).toEqual([401, 401])

    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete key' }).click()
    const remove = page.getByRole('dialog').getByRole('button', { name: 'Delete' })
    expect(await remove.isDisabled()).toBe(true)
    await page.getByRole('dialog').getByRole('textbox').fill(hostileName)
    await remove.click()
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    await page.getByRole('link', { name: hostileName }).waitFor({ state: 'detached' })
  })
})

it('an edit of a key retains its secret, and offers to undo the change', async () => {
  const gateway = await startFilledGateway({ keys: 3, rows: 0 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/keys?search=service 1`)
  await page.getByRole('link', { name: 'service 1' }).click()
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByLabel('Group').fill('finance')
  await page.getByRole('button', { name: 'Review and save' }).click()
  await confirm(page, 'Save')
  await page.getByText('finance').waitFor()
  expect(await statusWith(gateway, 'tg-generated-00001')).toBe(200)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('research').waitFor()
  expect(await statusWith(gateway, 'tg-generated-00001')).toBe(200)
})

it('the list of keys is searched, filtered, sorted and paged by the server', async () => {
  const gateway = await startFilledGateway({ keys: 60, rows: 200 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/keys`)
  await page.getByRole('link', { name: 'service 0', exact: true }).waitFor()
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('link', { name: 'service 9', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Previous' }).click()
  await page.getByRole('link', { name: 'service 0', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Name' }).click()
  await page.getByRole('link', { name: 'trial', exact: true }).waitFor()
  await page.getByLabel('Search keys').fill('user-16')
  await page.getByRole('link', { name: 'service 16', exact: true }).waitFor()
  await page.getByRole('radio', { name: 'Disabled' }).click()
  await page.getByText('No key matches').waitFor()
  expect(new URL(page.url()).searchParams.get('state')).toBe('disabled')
  await page.getByRole('button', { name: 'Clear search and filter' }).click()
  await page.getByRole('link', { name: 'trial', exact: true }).waitFor()
})

it('a key of the file is read-only beside a database, with its line', async () => {
  const gateway = await startFilledGateway({ keys: 1, rows: 0 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/keys?search=trial`)
  await page.getByRole('link', { name: 'trial', exact: true }).click()
  await page.getByText(/The configuration file owns this record, line \d+/).waitFor()
  expect(await page.getByRole('button', { name: 'Rotate' }).count()).toBe(0)
})

it('a key of another scope is not rotated, with the reason', async () => {
  const gateway = await startFilledGateway({
    keys: 0,
    rows: 0,
    config: {
      mcp: { targets: [], policies: { apiKey: { keys: [{ key: 'tg-mcp', metadata: { id: 'of-mcp' } }] } } },
    },
  })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/keys/of-mcp`)
  await page.getByText('This key belongs to mcp').waitFor()
  expect(await page.getByRole('button', { name: 'Rotate' }).count()).toBe(0)
})

it('without a key policy, the first key creates one', async () => {
  const gateway = await startFilledGateway({
    keys: 0,
    rows: 0,
    config: { llm: { models: [{ name: 'echo', provider: 'echo' }] } },
  })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/keys/new`)
  await page.getByLabel('Name', { exact: true }).fill('first')
  page.expectProblem(/409|404/)
  await page.getByRole('button', { name: 'Review and create' }).click()
  await page.getByRole('button', { name: 'Require keys' }).click()
  await confirm(page, 'Create')
  await page.getByRole('button', { name: 'Review and create' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
  expect(await statusWith(gateway, await takeKey(page))).toBe(200)
})

it('the pages of a key are accessible, and fit a telephone', async () => {
  const gateway = await startFilledGateway({ keys: 3, rows: 100 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/keys/new`, { size: [390, 844] })
  await page.getByRole('button', { name: 'Add limit' }).click()
  await page.getByRole('button', { name: 'Add budget' }).click()
  await page.getByRole('button', { name: 'Add metadata' }).click()
  await expectAccessible(page)
  await expectNoSideScroll(page)
  await page.goto(`${consoleUrl(gateway)}/llm/keys?search=service`)
  await page.getByRole('link', { name: 'service 1', exact: true }).click()
  await page.getByRole('heading', { level: 2, name: 'Access' }).waitFor()
  await expectAccessible(page)
  await expectNoSideScroll(page)
})
