import { describe, expect, it } from 'vitest'
import { expectAccessible, expectNoSideScroll } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, startFilledGateway } from '../support/browser/filled-gateway.ts'

// Prices in the console: effective prices, custom prices, import.

const browser = useBrowser()

const modelsDev = {
  anthropic: {
    models: { 'claude-sonnet-4-5': { cost: { input: 3, output: 15 }, limit: { context: 200_000 } } },
  },
  other: { models: { m: { cost: { input: 1, output: 1 } } } },
}

const file = (content: object) => ({
  name: 'api.json',
  mimeType: 'application/json',
  buffer: Buffer.from(JSON.stringify(content)),
})

describe.each([
  ['a file', 0],
  ['a database', 1],
])('prices in %s', (_, keys) => {
  it('are listed with their source, set and removed', async () => {
    const gateway = await startFilledGateway({ keys, rows: 100 })
    const page = await browser.open('about:blank')
    page.expectProblem(/404/)
    await page.goto(`${consoleUrl(gateway)}/llm/costs`)
    await page.getByRole('button', { name: 'gpt-5' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'New price' }).click()
    await page.getByRole('dialog').getByLabel('Provider').selectOption('echo')
    await page.getByRole('dialog').getByLabel('Model').fill('claude-sonnet')
    await page.getByRole('dialog').getByLabel('Input', { exact: true }).fill('3,5')
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByText('Enter digits with at most six decimals').waitFor()
    await page.getByRole('dialog').getByLabel('Input', { exact: true }).fill('3.5')
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^(Save|Create)$/ })
      .click()
    await page.getByRole('dialog').first().waitFor({ state: 'detached' })
    await page
      .getByRole('row', { name: /claude-sonnet/ })
      .getByText('$3.50')
      .waitFor()

    await page.getByRole('button', { name: 'claude-sonnet', exact: true }).click()
    await page.getByRole('button', { name: 'Remove custom price' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('row', { name: /claude-sonnet/ }).waitFor({ state: 'detached' })
  })
})

it('a public price list becomes the base catalog of a database', async () => {
  const gateway = await startFilledGateway({ keys: 1, rows: 0 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/costs`, { size: [390, 844] })
  await page.getByRole('button', { name: 'Import price list' }).click()
  await page.getByLabel('File').setInputFiles(file({ hello: 1 }))
  await page.getByText('The file has no known form').waitFor()
  await page.getByLabel('File').setInputFiles(file(modelsDev))
  await page.getByText('1 models with prices (models.dev)').waitFor()
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^(Save|Create)$/ })
    .click()
  await page.getByRole('button', { name: 'claude-sonnet-4-5' }).waitFor()
  await expectNoSideScroll(page)
  const costs = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/costs?source=base`)
  expect(await costs.json()).toMatchObject({ total: 1, models: [{ provider: 'anthropic' }] })
})
