import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl } from '../support/browser/filled-gateway.ts'
import { type Gateway, type GatewayConfig, startGateway } from '../support/gateway.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'
import { resourceApi, sqliteUrl, stored } from '../support/resource-api.ts'

// Records of any kind as a user edits them: list, form, YAML, comparison, conflicts, ownership.

const browser = useBrowser()

/** A value that becomes the expected one while the page and the gateway work. */
function soon<Value>(read: () => Value | Promise<Value>) {
  return expect.poll(read, { timeout: 15_000 })
}

const secret = 'sk-secret-of-the-file'
const base: GatewayConfig = {
  llm: {
    models: [
      { name: 'echo', provider: 'echo' },
      { name: 'paid', provider: 'openai', params: { apiKey: secret, baseUrl: 'https://api.example.com' } },
    ],
    policies: { authorization: { rules: [{ allow: 'request.method == "POST"' }] } },
  },
  mcp: { targets: [] },
}

const modes = ['file', 'sqlite', 'postgres'] as const

async function startIn(mode: (typeof modes)[number]): Promise<Gateway> {
  if (mode === 'file') return startGateway(base)
  if (mode === 'sqlite') return startGateway(stored(base, sqliteUrl()))
  return startGateway(stored(base, await (await startPostgres()).createDatabase()))
}

/** The file mode, for tests that save nothing: all of them read one process. */
let unchanged: Gateway

beforeAll(async () => {
  unchanged = await startGateway(base, { lifetime: 'file' })
})

async function completion({ url }: Gateway, model: string): Promise<number> {
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
  await reply.arrayBuffer()
  return reply.status
}

/** Confirms the comparison of a change. */
async function confirm(page: Page, action: 'Save' | 'Create'): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name: action, exact: true }).click()
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
}

const saveButton = (page: Page) => page.getByRole('button', { name: /^Review and/ })

async function review(page: Page): Promise<void> {
  await saveButton(page).click()
}

describe.each(modes)('in the storage mode %s', (mode) => {
  it.skipIf(mode === 'postgres' && postgresMissing !== undefined)(
    'a model is created, used, changed, restored and deleted',
    async () => {
      const gateway = await startIn(mode)
      const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.model`)
      await page.getByRole('link', { name: 'New model' }).click()
      await page.getByLabel(/^Name/).fill('assistant')
      await page.getByRole('textbox', { name: 'Provider' }).fill('echo')
      await review(page)
      await soon(() => page.getByRole('region', { name: 'Differences' }).textContent()).toContain('assistant')
      await confirm(page, 'Create')
      await page.getByRole('heading', { level: 1, name: 'assistant' }).waitFor()
      expect(await completion(gateway, 'assistant')).toBe(200)

      await page.getByLabel('Visibility').selectOption('internal')
      await review(page)
      await confirm(page, 'Save')
      await soon(() => completion(gateway, 'assistant')).toBe(404)
      const undo = page.getByRole('button', { name: 'Undo' }).last()
      const [toast, save] = [await undo.boundingBox(), await saveButton(page).boundingBox()]
      expect((toast?.y ?? 0) + (toast?.height ?? 0)).toBeLessThan(save?.y ?? 0)
      await undo.click()
      await soon(() => completion(gateway, 'assistant')).toBe(200)
      await soon(() => page.getByLabel('Visibility').inputValue()).toBe('')

      await page.getByRole('button', { name: 'Delete' }).click()
      const remove = page.getByRole('dialog').getByRole('button', { name: 'Delete' })
      expect(await remove.isDisabled()).toBe(true)
      await page.getByRole('dialog').getByRole('textbox').fill('assistant')
      await remove.click()
      await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
      expect(await completion(gateway, 'assistant')).toBe(404)
      await page.getByRole('button', { name: 'Undo' }).last().click()
      await page.getByRole('link', { name: 'assistant' }).waitFor()
      await soon(() => completion(gateway, 'assistant')).toBe(200)
    },
  )
})

it('a mistake appears at its field, first without the gateway, then from it', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/resources/llm.model/new`)
  page.expectProblem(/status of 500/)
  await page.getByLabel(/^Name/).fill('x')
  await page.getByRole('button', { name: 'Add Params' }).click()
  await page.getByLabel('Base URL').fill('example.com')
  await review(page)
  await page.getByText('must start with http:// or https://').waitFor()
  expect(await page.getByLabel('Base URL').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Base URL').fill('https://example.com')
  await page.getByRole('textbox', { name: 'Provider' }).fill('ecco')
  await review(page)
  await page.getByText('unknown provider "ecco", did you mean "echo"?').first().waitFor()
  expect(await page.getByRole('textbox', { name: 'Provider' }).getAttribute('aria-invalid')).toBe('true')
})

it('an edit retains secrets, comments and unknown order, and no secret reaches the page', async () => {
  const gateway = await startIn('file')
  const text = readFileSync(gateway.file, 'utf8')
  const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.model/paid`)
  await page.getByText('Stored, not displayed').waitFor()
  await page.getByLabel('Base URL').fill('https://other.example.com')
  await review(page)
  await page.getByRole('dialog').waitFor()
  expect(await page.content()).not.toContain(secret)
  await confirm(page, 'Save')
  expect(readFileSync(gateway.file, 'utf8')).toBe(
    text.replace('https://api.example.com', 'https://other.example.com'),
  )
})

it('two editors of one record merge their changes', async () => {
  const gateway = await startIn('sqlite')
  await resourceApi(gateway).create('llm.model', { name: 'shared', provider: 'echo' })
  const address = `${consoleUrl(gateway)}/resources/llm.model/shared`
  const one = await browser.open(address)
  const other = await browser.openBeside(one, address)
  one.expectProblem(/status of 412/)
  await one.getByLabel('Visibility').selectOption('internal')
  await other.getByRole('textbox', { name: 'Provider' }).fill('ollama')
  await other.getByRole('button', { name: 'Add Params' }).click()
  await other.getByLabel('Model', { exact: true }).fill('llama')
  await review(other)
  await confirm(other, 'Save')
  await review(one)
  await one.getByText('Both changes fit together').waitFor()
  await one.getByRole('button', { name: 'Merge by field' }).click()
  await confirm(one, 'Save')
  const [merged] = (await resourceApi(gateway).list('llm.model')).map(({ value }) => value)
  expect(merged).toEqual({
    name: 'shared',
    provider: 'ollama',
    params: { model: 'llama' },
    visibility: 'internal',
  })
})

it('a field that both editors changed is chosen by the second', async () => {
  const gateway = await startIn('sqlite')
  await resourceApi(gateway).create('llm.model', { name: 'shared', provider: 'echo', params: { model: 'a' } })
  const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.model/shared`)
  page.expectProblem(/status of 412/)
  await page.getByLabel('Model', { exact: true }).fill('mine')
  await resourceApi(gateway).ask('PUT', '/llm.model/shared', {
    value: { name: 'shared', provider: 'echo', params: { model: 'theirs' } },
  })
  await review(page)
  await page.getByText('Params › Model').waitFor()
  await page.getByRole('button', { name: 'Use theirs' }).click()
  await soon(() => page.getByLabel('Model', { exact: true }).inputValue()).toBe('theirs')
})

it('a record of the file is read-only in hybrid mode, with its line', async () => {
  const gateway = await startIn('sqlite')
  const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.model/paid`)
  await page.getByText(/The configuration file owns this record, line \d+: change it there\./).waitFor()
  expect(await saveButton(page).count()).toBe(0)
  expect(await page.getByLabel(/^Name/).getAttribute('readonly')).not.toBeNull()
})

it('nothing can be changed in a read-only configuration', async () => {
  const gateway = await startGateway({ ...base, config: { storage: { mode: 'readOnly' } } })
  const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.model`)
  await page.getByRole('link', { name: 'paid' }).waitFor()
  expect(await page.getByRole('link', { name: 'New model' }).count()).toBe(0)
  await page.getByRole('link', { name: 'paid' }).click()
  await page
    .getByText(/read-only/)
    .first()
    .waitFor()
  expect(await page.getByRole('button', { name: /^Review and|^Delete/ }).count()).toBe(0)
})

it('unsaved input is not lost by a navigation', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/resources/llm.model`)
  await page.getByRole('link', { name: 'echo' }).click()
  await page.getByLabel('Visibility').selectOption('internal')
  for (const leave of [() => page.getByRole('link', { name: 'Keys' }).click(), () => page.goBack()]) {
    await leave()
    await page.getByRole('button', { name: 'Stay' }).click()
    expect(await page.getByLabel('Visibility').locator('option:checked').textContent()).toBe('internal')
  }
  await page.getByRole('link', { name: 'Overview' }).first().click()
  await page.getByRole('button', { name: 'Leave without saving' }).click()
  await soon(() => new URL(page.url()).pathname).toBe('/ui/')
})

it('form and YAML edit the same record', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/resources/llm.model/paid`)
  await page.getByRole('radio', { name: 'YAML' }).click()
  const editor = page.getByRole('textbox', { name: /^YAML of the record/ })
  await soon(() => editor.textContent()).toContain('provider: openai')
  await editor.press('ControlOrMeta+End')
  await editor.pressSequentially('visibility: i')
  await page.getByRole('option', { name: 'internal' }).click()
  await page.getByRole('radio', { name: 'Form' }).click()
  await soon(() => page.getByLabel('Visibility').inputValue()).not.toBe('')
  await page.getByText('Stored, not displayed').waitFor()
  await page.getByRole('radio', { name: 'YAML' }).click()
  await editor.press('ControlOrMeta+End')
  await editor.pressSequentially('\nvisibility: public')
  await review(page)
  await page.getByText(/The YAML is not valid in line/).waitFor()
})

it('an expression is checked while it is typed', async () => {
  const page = await browser.open(`${consoleUrl(unchanged)}/llm/policies/authorization`)
  const editor = page.locator('.cm-content')
  await editor.press('End')
  await editor.pressSequentially(' && jwt.')
  await page.locator('.cm-lintRange-error').waitFor()
  await editor.pressSequentially('sub == "ada"')
  await page.locator('.cm-lintRange-error').waitFor({ state: 'detached' })
})

it('a policy is added with the keyboard alone', async () => {
  const gateway = await startIn('file')
  const page = await browser.open(`${consoleUrl(gateway)}/llm/policies`)
  await page.getByRole('link', { name: 'Add Local rate limit' }).focus()
  await page.keyboard.press('Enter')
  const add = page.getByRole('button', { name: 'Add item' })
  await add.waitFor()
  await add.focus()
  await page.keyboard.press('Enter')
  const unit = page.getByLabel(/^Unit/)
  await unit.waitFor()
  await tabTo(page, 'select')
  await page.keyboard.type('Min')
  await soon(() => unit.locator('option:checked').textContent()).toBe('Minutes')
  await page.getByRole('radio', { name: 'Requests', exact: true }).focus()
  await page.keyboard.press('Space')
  await page.getByLabel(/^Requests/).focus()
  await page.keyboard.type('60')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  expect(readFileSync(gateway.file, 'utf8')).toMatch(
    /"localRateLimit": \[\s+\{\s+"(?:unit": "Minutes",\s+"requests": 60|requests": 60,\s+"unit": "Minutes")/,
  )
})

/** Presses Tab until an element of this name has the focus. */
async function tabTo(page: Page, tagName: string): Promise<void> {
  for (let presses = 0; presses < 30; presses++) {
    if ((await page.evaluate('document.activeElement.localName')) === tagName) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`no ${tagName} is reached with Tab`)
}

it('the order of a list changes with the arrow keys', async () => {
  const gateway = await startIn('sqlite')
  await resourceApi(gateway).create('llm.virtualModel', {
    name: 'many',
    routing: {
      weighted: {
        targets: [
          { model: 'echo', weight: 1 },
          { model: 'paid', weight: 2 },
        ],
      },
    },
  })
  const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.virtualModel/many`)
  await page.getByRole('button', { name: 'Move Targets 2: arrow keys' }).press('ArrowUp')
  await review(page)
  await confirm(page, 'Save')
  const [record] = await resourceApi(gateway).list('llm.virtualModel')
  expect(record?.value).toMatchObject({
    routing: { weighted: { targets: [{ model: 'paid' }, { model: 'echo' }] } },
  })
})

it('names with markup are text', async () => {
  const gateway = await startIn('sqlite')
  const name = '<img src=x onerror=alert(1)>"\u202e🦊'
  await resourceApi(gateway).create('llm.model', { name, provider: 'echo' })
  await resourceApi(gateway).create('llm.model', {
    name: 'long',
    provider: 'echo',
    defaults: { text: 'x'.repeat(10_000) },
  })
  const page = await browser.open(`${consoleUrl(gateway)}/resources/llm.model?search=img`)
  await page.getByRole('link', { name }).click()
  await page.getByRole('heading', { level: 1, name }).waitFor()
  expect(await page.locator('img').count()).toBe(0)
  await page.goto(`${consoleUrl(gateway)}/resources/llm.model/long`)
  await page.getByRole('heading', { level: 1, name: 'long' }).waitFor()
  const overflow = await page.evaluate(
    'document.documentElement.scrollWidth > document.documentElement.clientWidth',
  )
  expect(overflow).toBe(false)
})

it.each([
  '/resources/llm.model',
  '/resources/llm.model/new',
  '/resources/llm.model/paid',
  '/resources/traffic.route/new',
  '/resources/mcp.settings',
  '/llm/policies',
  '/llm/policies/authorization',
  '/mcp/policies',
  '/settings',
])('%s is accessible', async (path) => {
  const page = await browser.open(`${consoleUrl(unchanged)}${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  await expectAccessible(page)
})
