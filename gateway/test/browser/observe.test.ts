import { beforeAll, expect, it } from 'vitest'
import { expectAccessible, overflowOf } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, type FilledGateway, startFilledGateway } from '../support/browser/filled-gateway.ts'
import { startGateway } from '../support/gateway.ts'
import { until } from '../support/wait.ts'

// Pages over the ledger: requests, usage, budgets, limits, and the overview.

const browser = useBrowser()

const hostile = '<img src=x onerror="document.title=\'run\'"> \u202Eabc 👾'

async function ask({ url, key }: FilledGateway, model: string, content: string): Promise<string> {
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  })
  await reply.arrayBuffer()
  return reply.headers.get('x-request-id') ?? ''
}

/** For tests that send no requests. */
let unchanged: FilledGateway

beforeAll(async () => {
  unchanged = await startFilledGateway({ rows: 3_000, lifetime: 'file' })
})

/** Resolves when the ledger has a request. */
async function recorded({ adminPort }: FilledGateway, id: string): Promise<void> {
  await until(`the request ${id} in the ledger`, async () => {
    const reply = await fetch(`http://127.0.0.1:${adminPort}/api/requests/${id}`)
    await reply.arrayBuffer()
    return reply.ok
  })
}

it('the overview displays problems, traffic, leaders and listeners', async () => {
  const gateway = await startFilledGateway()
  const page = await browser.open(consoleUrl(gateway))
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('heading', { name: 'Keys in plain text' }).waitFor()
  await page.getByRole('region', { name: 'Traffic now' }).getByText('Requests per second').waitFor()
  await page.getByRole('list', { name: 'Top models' }).getByRole('listitem').first().waitFor()
  await page.getByRole('table', { name: 'Listeners' }).getByText(String(gateway.trafficPort)).waitFor()
  await expectAccessible(page)
  // Each plot has a table for keyboards and screen readers.
  await page.getByRole('button', { name: 'Requests of the last 24 hours: show as a table' }).click()
  await page.getByRole('columnheader', { name: 'Succeeded' }).waitFor()
  await page.getByRole('list', { name: 'Top keys' }).getByRole('link').first().click()
  await page.waitForURL(/\/requests\?keyId=/)
  await page.getByText(/^Key id is /).waitFor()
})

it('a search finds refused requests, and a request explains its outcome', async () => {
  const gateway = await startFilledGateway()
  // The budget `trial` of this user is used up.
  const id = await ask(gateway, 'gpt-5', 'Details of the forecast')
  await recorded(gateway, id)
  const page = await browser.open(`${consoleUrl(gateway)}/requests?range=1h`)
  const table = page.getByRole('table', { name: 'Requests' })
  await table.waitFor()
  await expectAccessible(page)
  await page.getByRole('radio', { name: 'Failed' }).click()
  await page.waitForURL(/status\.min=400/)
  await page.getByRole('button', { name: 'Filter', exact: true }).click()
  await page.getByLabel('Field').selectOption('refusedBy')
  await page.getByLabel('Condition').selectOption('contains')
  await page.getByLabel('Value').fill('trial')
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.waitForURL(/refusedBy/)
  await table.getByText('budget: llm: trial').first().waitFor()
  expect(await table.getByText('rate-limit').count()).toBe(0)
  await table.getByRole('link').first().click()
  await page.waitForURL(new RegExp(`/requests/${id}`))
  await page.getByText('The budget "trial" of 200 tokens is used up').waitFor()
  await page.getByRole('list', { name: 'Phases of the request' }).getByText('Policies').waitFor()
  await page.getByText('stopped by budgets').waitFor()
  await page.getByRole('article').getByText('Details of').waitFor()
  await expectAccessible(page)
  await page.getByRole('link', { name: 'Requests' }).last().click()
  // The filters remain.
  await page.waitForURL(/status\.min=400.*refusedBy/)
})

it('pages of a search follow their cursor and return', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/requests?range=30d`)
  const first = page.getByRole('table', { name: 'Requests' }).getByRole('link').first()
  const newest = await first.getAttribute('href')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.waitForURL(/cursor=/)
  await expect.poll(() => first.getAttribute('href')).not.toBe(newest)
  await page.getByRole('button', { name: 'Previous' }).click()
  await expect.poll(() => first.getAttribute('href')).toBe(newest)
})

it('the id of a request in the search opens the request, and an unknown id is reported', async () => {
  const gateway = await startFilledGateway({ rows: 0 })
  const id = await ask(gateway, 'echo', 'Hello')
  const page = await browser.open(`${consoleUrl(gateway)}/requests`)
  await page.getByRole('searchbox', { name: 'Search requests' }).fill(id)
  await page.getByRole('link', { name: 'Open the request' }).click()
  await page.getByRole('heading', { name: 'Decisions' }).waitFor()
  page.expectProblem(/404/)
  await page.goto(`${consoleUrl(gateway)}/requests/unknown`)
  await page.getByRole('alert').getByText('no request has this id').waitFor()
})

it('the live view displays new requests, and none is lost during a pause', async () => {
  const gateway = await startFilledGateway({ rows: 0 })
  const page = await browser.open(`${consoleUrl(gateway)}/requests?view=live`)
  await page.getByText('Following').waitFor()
  await ask(gateway, 'local-first', 'Hello')
  await page.getByText('local-first').waitFor()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused', { exact: true }).waitFor()
  await ask(gateway, 'local-second', 'Hello')
  await expectAccessible(page)
  expect(await page.getByText('local-second').count()).toBe(0)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('local-second').waitFor()
  expect(await page.getByText('local-first').count()).toBe(1)
})

it('usage is plotted by two fields, compared, opened in detail and exported', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/usage?range=7d`)
  await page.getByRole('radio', { name: /Cost/ }).click()
  await page.getByLabel('Group by').selectOption('group')
  await page.getByLabel('Second group').selectOption('servedModel')
  await page.getByRole('radio', { name: 'With the previous' }).click()
  await page.waitForURL(/metric=cost.*by=group.*and=servedModel.*compare=previous/)
  const table = page.getByRole('table', { name: 'Usage by group' })
  await table.getByRole('columnheader', { name: 'Cost, change' }).waitFor()
  await page.locator('figure canvas').waitFor()
  await expectAccessible(page)
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Export CSV' }).click(),
  ])
  expect(download.suggestedFilename()).toMatch(/^usage-.*\.csv$/)
  const group = await table.getByRole('link').first().textContent()
  await table.getByRole('link').first().click()
  await page.waitForURL(/\/requests\?.*group=/)
  await page.getByText(`Group is ${group}`).waitFor()
})

it('budgets are sorted by use, with a forecast and links', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/budgets`)
  const row = page.getByRole('table', { name: 'Budgets' }).getByRole('row').nth(1)
  await row.getByText('trial').first().waitFor()
  await row.getByText('refuses requests').waitFor()
  await expectAccessible(page)
  await row.getByRole('link', { name: 'Refused' }).click()
  await page.getByText('Refused by is budget: llm: trial').waitFor()
  await page
    .getByText('No request matches')
    .or(page.getByRole('table', { name: 'Requests' }))
    .waitFor()
})

it('limits display what is left, and lead to the requests that they refused', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/limits`)
  await page.getByRole('heading', { name: 'llm: requests per minute' }).waitFor()
  await page
    .getByText(/of 600 left/)
    .first()
    .waitFor()
  await expectAccessible(page)
  await page.getByRole('link', { name: 'Refused requests' }).click()
  await page.getByText('Refused by is rate-limit: llm: requests per minute').waitFor()
})

it('texts of clients are inert', async () => {
  const gateway = await startFilledGateway({ rows: 0 })
  const id = await ask(gateway, `local-${hostile}`, `${hostile} ${'x'.repeat(10_000)}`)
  await recorded(gateway, id)
  const page = await browser.open(`${consoleUrl(gateway)}/requests/${id}`, { size: [390, 844] })
  await page.getByRole('article').first().getByText('<img src=x').waitFor()
  expect(await page.locator('main img').count()).toBe(0)
  expect(await overflowOf(page)).toBeLessThanOrEqual(0)
  await page.goto(`${consoleUrl(gateway)}/requests?text=${encodeURIComponent(hostile)}`)
  await page.getByRole('table', { name: 'Requests' }).getByText('<img src=x').first().waitFor()
  expect(await page.title()).toBe('Requests · Tollgate')
})

it.each(['', '/requests', '/requests?view=live', '/usage?compare=previous', '/budgets', '/limits'])(
  'the page "%s" fits a narrow window',
  async (path) => {
    const page = await browser.open(`${consoleUrl(unchanged)}${path}`, { size: [390, 844] })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await expect.poll(() => page.getByRole('status', { name: 'Loading' }).count()).toBe(0)
    expect(await overflowOf(page)).toBeLessThanOrEqual(0)
    await expectAccessible(page)
  },
)

it('pages without a ledger name the configuration to add', async () => {
  const gateway = await startGateway({ llm: { models: [{ name: 'echo', provider: 'echo' }] } })
  for (const path of ['requests', 'usage']) {
    const page = await browser.open(`${consoleUrl(gateway)}/${path}`)
    page.expectProblem(/404/)
    await page.getByRole('heading', { name: 'This gateway has no ledger yet' }).waitFor()
    await page.getByText('sqlite://tollgate.db').waitFor()
    await expectAccessible(page)
  }
  const limits = await browser.open(`${consoleUrl(gateway)}/limits`)
  await limits.getByRole('heading', { name: 'No limits yet' }).waitFor()
  const budgets = await browser.open(`${consoleUrl(gateway)}/budgets`)
  await budgets.getByRole('heading', { name: 'No budgets yet' }).waitFor()
})
