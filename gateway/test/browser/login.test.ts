import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser, type WatchedPage } from '../support/browser/browser.ts'
import { endAfter } from '../support/cleanup.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { loginClient, startLoginProvider } from '../support/login-provider.mjs'
import { sqliteUrl, stored } from '../support/resource-api.ts'

// The console on a gateway, with logins at a real OpenID provider.

const browser = useBrowser()

const users = {
  ada: { name: 'Ada Lovelace', email: 'ada@example.com', groups: ['platform'] },
  bob: { name: 'Bob', email: 'bob@example.com', groups: ['developers'] },
  eve: { name: '<b>Eve</b>', email: 'eve@example.com', groups: [] },
}

const rules = [{ require: '"platform" in jwt.groups || (!ui.change && "developers" in jwt.groups)' }]

async function startConsole(session: object = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const provider = await startLoginProvider({
    redirectUris: [`${url}/oauth/callback`],
    postLogoutRedirectUris: [`${url}/ui/`],
    users,
  })
  endAfter('test', provider.close)
  const oidc = {
    ...{ issuer: provider.issuer, clientId: loginClient.id, clientSecret: loginClient.secret },
    scopes: ['profile', 'email'],
    session,
  }
  const gateway = await startGateway(
    stored(
      {
        gateways: { default: { port } },
        ui: { policies: { oidc, authorization: { rules } } },
        llm: { models: [{ name: 'echo', provider: 'echo' }], policies: { apiKey: { keys: [] } } },
      },
      sqliteUrl(),
    ),
  )
  return { url, provider, gateway }
}

async function logIn(page: Page, name: string): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Log in' }).click()
}

describe('the console behind a login', () => {
  it('returns to the deep link, displays the user with their rights, and logs out', async () => {
    const { url, provider } = await startConsole()
    const page = await browser.open(`${url}/ui/llm/keys?search=team`)
    expect(page.url()).toContain(provider.issuer)
    await logIn(page, 'ada')
    await page.waitForURL(`${url}/ui/llm/keys?search=team`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Account: Ada Lovelace' }).click()
    await page.getByText('May change the configuration').waitFor()
    await page.getByText('Groups: platform').waitFor()
    await page.getByText(/^Session ends /).waitFor()
    await expectAccessible(page)
    await page.getByRole('menuitem', { name: 'Log out' }).click()
    // The page of the provider asks for a confirmation.
    await page.getByRole('button', { name: 'Yes' }).waitFor()
    expect(page.url()).toContain(`${provider.issuer}/session/end`)
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByRole('heading', { name: 'Logged out at the provider' }).waitFor()
    await page.goto(`${url}/ui/`)
    expect(page.url()).toContain(provider.issuer)
  })

  it('lets a role without changes look only', async () => {
    const { url } = await startConsole()
    const page = await browser.open(`${url}/ui/`)
    await logIn(page, 'bob')
    await page.getByRole('button', { name: 'Account: Bob' }).click()
    await page.getByText('May only look').waitFor()
    page.expectProblem(/403/)
    const status = await page.evaluate(async () => {
      const headers = { 'content-type': 'application/json', 'x-tollgate-console': '1' }
      const body = JSON.stringify({ resources: [{ value: { name: 'x', provider: 'echo' } }] })
      return (await fetch('/api/config/resources/llm.model', { method: 'PUT', headers, body })).status
    })
    expect(status).toBe(403)
  })

  it('refuses a role without access with a page that offers another login', async () => {
    const { url } = await startConsole()
    const page = await browser.open(`${url}/ui/`)
    page.expectProblem(/403/)
    await logIn(page, 'eve')
    await page.getByRole('heading', { name: 'Access denied' }).waitFor()
    await page.getByText('<b>Eve</b>').waitFor()
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Log out' }).click()
    await page.getByRole('button', { name: 'Yes' }).waitFor()
  })

  it('keeps unsaved input when the session ends, and repeats the call after the login', async () => {
    const { url } = await startConsole()
    const page = await browser.open(`${url}/ui/llm/keys/new`)
    await logIn(page, 'ada')
    await page.getByLabel('Name', { exact: true }).fill('of the late evening')
    await endSession(page)
    await page.getByRole('button', { name: 'Review and create' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    await dialog.waitFor()
    await expectAccessible(page)
    await renew(page, 'ada')
    await dialog.waitFor({ state: 'hidden' })
    // The call that was refused continues with its comparison.
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click()
    await page.getByText('Key created: of the late evening').first().waitFor()
  })

  it('loads the code of a page after the login', async () => {
    const { url } = await startConsole()
    const page = await browser.open(`${url}/ui/`)
    await logIn(page, 'ada')
    await page.getByRole('heading', { level: 1 }).waitFor()
    await endSession(page)
    await page.getByRole('navigation').getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    await renew(page, 'ada')
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  })

  it('asks again when another user has logged in, and after a postponed login', async () => {
    const { url } = await startConsole()
    const page = await browser.open(`${url}/ui/llm/keys/new`)
    await logIn(page, 'ada')
    const name = page.getByLabel('Name', { exact: true })
    await name.fill('kept')
    await endSession(page)
    await page.getByRole('button', { name: 'Review and create' }).click()
    await page.getByRole('button', { name: 'Not now' }).click()
    await page.getByText('nothing can be saved').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Log in' }).click()
    await renew(page, 'bob')
    await page.getByText('You are logged in as Bob. Check your input and save again.').first().waitFor()
    expect(await name.inputValue()).toBe('kept')
    await page.getByRole('button', { name: 'Account: Bob' }).waitFor()
  })
})

/** Ends the sessions at the gateway and at the provider. */
async function endSession(page: WatchedPage): Promise<void> {
  page.expectProblem(/401/)
  await page.context().clearCookies({ name: /^(?:tollgate-oidc-s-|_)/ })
}

/** Logs in with the window that the dialog opens. */
async function renew(page: Page, name: string): Promise<void> {
  const [popup] = await Promise.all([
    page.waitForEvent('popup'),
    page.getByRole('dialog').getByRole('button', { name: 'Log in' }).click(),
  ])
  await logIn(popup, name)
}
