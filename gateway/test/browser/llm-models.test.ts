import { expect, it } from 'vitest'
import { expectAccessible, expectNoSideScroll } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, startFilledGateway } from '../support/browser/filled-gateway.ts'
import { resourceApi } from '../support/resource-api.ts'

// Models, virtual models and providers in the console.

const browser = useBrowser()

it('a model with a credential is created, tested, and does not display the credential again', async () => {
  const gateway = await startFilledGateway({ keys: 1, rows: 100 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/models`)
  page.expectProblem(/404/)
  await page.getByRole('link', { name: 'New model' }).click()
  await page.getByLabel('Name').first().fill('fresh')
  await page.getByLabel('Provider', { exact: false }).first().selectOption('echo')
  await page.getByPlaceholder('Secret, or $NAME').fill('sk-canary-of-the-console')
  await page.getByRole('button', { name: 'Review and create' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { level: 1, name: 'fresh' }).waitFor()
  await page.getByText('Stored, not displayed').waitFor()
  expect(await page.content()).not.toContain('sk-canary-of-the-console')

  await page.getByRole('button', { name: 'Test' }).click()
  await page.getByLabel('Virtual key').fill('tg-generated-00000')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByText('Explain this request').waitFor()
  await expectAccessible(page)
})

it('the list of models has provider, price and use, and fits a telephone', async () => {
  const gateway = await startFilledGateway({ keys: 1, rows: 100 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/models`)
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'gpt-5', exact: true }) })
  await row.getByText('$2.50').waitFor()
  await row.getByRole('link', { name: 'main' }).waitFor()
  await expectAccessible(page)
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoSideScroll(page)
})

it('a virtual model is edited with a picture of its weights', async () => {
  const gateway = await startFilledGateway({ keys: 1, rows: 0 })
  await resourceApi(gateway).create('llm.virtualModel', {
    name: 'split',
    routing: {
      weighted: {
        targets: [
          { model: 'gpt-5', weight: 3 },
          { model: 'echo', weight: 1 },
        ],
      },
    },
  })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/virtual-models`)
  await page.getByText('gpt-5 75% · echo 25%').waitFor()
  await expectAccessible(page)
  await page.getByRole('link', { name: 'split' }).click()
  const picture = page.getByRole('list').filter({ hasText: 'weight 3' })
  await picture.getByText('75%').waitFor()
  await page.getByRole('textbox', { name: 'Weight' }).first().fill('1')
  await page.getByText('50%').first().waitFor()
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const [record] = await resourceApi(gateway).list('llm.virtualModel')
  expect(record?.value['routing']).toEqual({
    weighted: {
      targets: [
        { model: 'gpt-5', weight: 1 },
        { model: 'echo', weight: 1 },
      ],
    },
  })
})

it('a shared provider is created with a reference to the environment', async () => {
  const gateway = await startFilledGateway({ keys: 0, rows: 0 })
  const page = await browser.open(`${consoleUrl(gateway)}/llm/providers/new`)
  page.expectProblem(/404/)
  await page.getByLabel('Name').first().fill('second')
  await page.getByLabel('Kind').selectOption('echo')
  await page.getByRole('button', { name: 'Review and create' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { level: 1, name: 'second' }).waitFor()
  await page.goto(`${consoleUrl(gateway)}/llm/providers`)
  await page.getByRole('link', { name: 'second' }).waitFor()
  await expectAccessible(page)
})
