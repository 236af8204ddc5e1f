import { expect, it } from 'vitest'
import { expectAccessible, expectNoSideScroll } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, startFilledGateway } from '../support/browser/filled-gateway.ts'
import { resourceApi } from '../support/resource-api.ts'

// Guards in the console: order, settings, and trials of texts.

const browser = useBrowser()

it('guards are tried, ordered by keyboard, added and saved', async () => {
  const gateway = await startFilledGateway({ keys: 0, rows: 0 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/guards`)
  await page.getByLabel('Text').fill('Ask ada@example.com about <b>Bluebird</b>')
  await page.getByRole('button', { name: 'Try', exact: true }).click()
  await page.getByText('is rejected').waitFor()
  expect(await page.locator('ins').textContent()).toBe('<EMAIL_ADDRESS>')
  expect(await page.locator('del').textContent()).toBe('ada@example.com')
  await expectAccessible(page)

  await page.getByRole('button', { name: 'Move guard 1 down' }).focus()
  await page.keyboard.press('Enter')
  const items = page.getByRole('list', { name: 'Guards of requests' }).getByRole('listitem')
  expect(await items.first().textContent()).toContain('project names')

  await page.getByRole('button', { name: 'Add guard' }).last().click()
  await page.getByRole('menuitem', { name: 'Regex' }).click()
  await page.getByRole('dialog').getByText('Builtin', { exact: true }).click()
  await page
    .getByRole('dialog')
    .getByRole('combobox', { name: /^Builtin/ })
    .selectOption('phoneNumber')
  await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).last().click()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('No changes').waitFor()
  const { body } = await resourceApi(gateway).ask('GET', '/llm.policy/guardrails')
  expect(body).toMatchObject({
    value: {
      request: [{ name: 'project names' }, { name: 'personal data' }],
      response: [{ regex: { rules: [{ builtin: 'phoneNumber' }] } }],
    },
  })
})

it('without guards, the page offers the first one and fits a telephone', async () => {
  const gateway = await startFilledGateway({
    keys: 0,
    rows: 0,
    config: { llm: { models: [{ name: 'echo', provider: 'echo' }] } },
  })
  const page = await browser.open('about:blank', { size: [390, 844] })
  page.expectProblem(/404/)
  await page.goto(`${consoleUrl(gateway)}/llm/guards`)
  await page.getByText('No guards of requests').waitFor()
  await expectAccessible(page)
  await expectNoSideScroll(page)
})
