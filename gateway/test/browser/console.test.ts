import { expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, startFilledGateway } from '../support/browser/filled-gateway.ts'

const browser = useBrowser()

it('the console opens, and its policy permits all of it', async () => {
  const gateway = await startFilledGateway()
  const page = await browser.open(`${consoleUrl(gateway)}/`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await expectAccessible(page)
  expect(page.url()).toBe(`${consoleUrl(gateway)}/`)
})
