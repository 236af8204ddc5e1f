import { expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl } from '../support/browser/filled-gateway.ts'
import { startGateway } from '../support/gateway.ts'
import { sqliteUrl } from '../support/resource-api.ts'

const browser = useBrowser()

it('the chat compares models, reports tokens, cost and guards, and explains a refusal', async () => {
  const gateway = await startChatGateway()
  const page = await browser.open(`${consoleUrl(gateway)}/chat`)
  await page.getByRole('log').getByLabel('Virtual key').fill(key)
  await page.getByRole('button', { name: 'Use this key' }).click()
  await page.getByRole('button', { name: 'Compare model' }).click()
  await page.getByLabel('Model', { exact: true }).nth(0).fill('gpt-5')
  await page.getByLabel('Model', { exact: true }).nth(1).fill('claude-sonnet')

  const message = page.getByLabel('Message', { exact: true })
  await message.fill('Mail **ada@example.com** <img src=x onerror=alert(1)>')
  await message.press('Enter')
  const first = page.getByRole('article', { name: 'Answer of gpt-5' })
  await first.getByText('Open request').waitFor()
  await page.getByRole('article', { name: 'Answer of claude-sonnet' }).getByText('Open request').waitFor()
  // The guard masks the address, Markdown is rendered, and HTML stays text.
  expect(await first.locator('strong').innerText()).not.toContain('ada@example.com')
  expect(await first.locator('img').count()).toBe(0)
  await first.getByText(/personal data: /).waitFor()
  await first.getByText(/Cost \$/).waitFor()

  page.expectProblem(/403/)
  await message.fill('Report on Bluebird')
  await message.press('Enter')
  const refused = page.getByRole('article', { name: 'Answer of gpt-5' }).nth(1)
  await refused
    .getByText(/project names/)
    .first()
    .waitFor()
  await expectAccessible(page)
  await refused.getByRole('link', { name: 'Explain' }).click()
  await page.waitForURL(/\/ui\/requests\//)
})

it('the chat sends images and tools, and continues with the result of a call', async () => {
  const gateway = await startChatGateway()
  const page = await browser.open(`${consoleUrl(gateway)}/chat`)
  const settings = page.getByRole('complementary', { name: 'Settings' })
  await settings.getByLabel('Virtual key').fill(key)
  await settings.getByRole('button', { name: 'Add function' }).click()
  await page.getByLabel('Model', { exact: true }).fill('gpt-5')

  await page.getByLabel('Images', { exact: true }).setInputFiles([
    { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('no real image') },
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('x') },
  ])
  await page.getByText('notes.txt is not an image').waitFor()
  await page.getByRole('button', { name: 'Remove dot.png' }).waitFor()
  await page.getByLabel('Message', { exact: true }).fill('Weather?')
  await page.getByRole('button', { name: 'Send', exact: true }).click()

  const answer = page.getByRole('article', { name: 'Answer of gpt-5' })
  await answer.getByText('Open request').waitFor()
  await answer.getByRole('button', { name: 'Request, headers and code' }).click()
  const code = page.getByRole('region', { name: 'code' })
  expect(await code.innerText()).toContain('get_weather')
  await page.getByLabel('Language').selectOption('anthropic-python')
  expect(await code.innerText()).toContain('"media_type": "image/png"')
  await page.getByRole('tab', { name: 'Response' }).click()
  await page.getByRole('rowheader', { name: 'x-request-id' }).waitFor()
  await page.keyboard.press('Escape')

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    (async () => {
      await page.getByRole('button', { name: 'Export' }).click()
      await page.getByRole('menuitem', { name: 'Export as JSON' }).click()
    })(),
  ])
  expect(download.suggestedFilename()).toBe('chat.json')
  await page.getByRole('button', { name: 'Clear conversations' }).click()
  await answer.waitFor({ state: 'detached' })
})

const key = 'tg-of-the-playground-tests'

/** A gateway with two models with prices, a guard that masks and one that rejects. */
function startChatGateway() {
  const rates = { rates: { input: '2.50', output: '10' } }
  const models = { 'gpt-5': rates, 'claude-sonnet': rates }
  return startGateway({
    config: {
      database: { url: sqliteUrl() },
      modelCatalog: [{ inline: { providers: { echo: { models } } } }],
    },
    llm: {
      models: Object.keys(models).map((name) => ({ name, provider: 'echo' })),
      policies: {
        apiKey: { mode: 'strict', keys: [{ key, metadata: { name: 'playground' } }] },
        localRateLimit: [{ requests: 100, unit: 'Minutes' }],
        guardrails: {
          request: [
            { name: 'personal data', regex: { rules: [{ builtin: 'email' }] } },
            { name: 'project names', regex: { action: 'reject', rules: [{ pattern: 'Bluebird' }] } },
          ],
        },
      },
    },
  })
}
