import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import { expectAccessible } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl } from '../support/browser/filled-gateway.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { programTarget } from '../support/mcp-fixtures.ts'

// MCP in the console: servers with live lists, access by claims, and the playground on a real MCP server.

const browser = useBrowser()

/** The reference server of the protocol, as a program. */
function everythingTarget() {
  const main = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
  return { name: 'everything', stdio: { cmd: process.execPath, args: [main, 'stdio'] } }
}

const rules = [
  { deny: 'has(mcp.tool) && mcp.tool.name == "get-env"' },
  'has(mcp.prompt) || has(mcp.resource)',
  'has(mcp.tool) && (mcp.tool.name != "get-sum" || (has(jwt.roles) && "admin" in jwt.roles))',
]

function startMcpConsole() {
  return startGateway({
    config: { storage: { allowStdioTargets: true } },
    mcp: {
      targets: [everythingTarget(), programTarget('files')],
      failureMode: 'failOpen',
      policies: { mcpAuthorization: { rules } },
    },
  })
}

it('servers have a live state, and their tools have arguments', async () => {
  const gateway = await startMcpConsole()
  const page = await browser.open(`${consoleUrl(gateway)}/mcp/servers`)
  const row = page.getByRole('row', { name: /everything/ })
  await row.getByText('Connected').waitFor({ timeout: 60_000 })
  await expectAccessible(page)
  await row.getByRole('link', { name: 'everything' }).click()
  await page.getByRole('heading', { level: 1, name: 'everything' }).waitFor()
  await page.getByLabel('Search tools').fill('sum')
  await page.getByRole('button', { name: /get-sum/ }).click()
  await page.getByRole('row', { name: /\ba\b.*number/ }).waitFor()
  await expectAccessible(page)
})

it('a server is added with its transport, shown with the cause of its failure, and removed', async () => {
  const gateway = await startMcpConsole()
  const page = await browser.open(`${consoleUrl(gateway)}/mcp/servers`)
  // The record does not exist before and after.
  page.expectProblem(/status of 404/)
  await page.getByRole('link', { name: 'New server' }).click()
  await page.getByRole('button', { name: /^Program/ }).click()
  await expectAccessible(page)
  await page.getByRole('textbox', { name: /^Name/ }).fill('broken')
  await page.getByRole('textbox', { name: /^Cmd/ }).fill('/no/such/program')
  await page.getByRole('button', { name: 'Review and create' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^(Create|Save|Apply)/ })
    .click()
  await page.getByRole('heading', { level: 1, name: 'broken' }).waitFor()
  await page.getByText('The server does not answer', { exact: true }).waitFor({ timeout: 60_000 })
  const state = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/mcp/targets`)
  expect(JSON.stringify(await state.json())).toContain('broken')
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  const confirmation = page.getByRole('dialog')
  const typed = confirmation.getByRole('textbox')
  if ((await typed.count()) > 0) await typed.fill('broken')
  await confirmation.getByRole('button', { name: /^(Delete|Remove)/ }).click()
  await page.getByRole('heading', { level: 1, name: 'MCP servers' }).waitFor()
  await expect.poll(() => page.getByRole('link', { name: 'broken' }).count()).toBe(0)
})

it('access shows what a client sees, and the rule that hides the rest', async () => {
  const gateway = await startMcpConsole()
  const page = await browser.open(`${consoleUrl(gateway)}/mcp/access`)
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`everything_${name}\\b`) })
  await row('get-env').getByText('hidden').waitFor({ timeout: 60_000 })
  await row('get-env').getByText('Rule 1 (deny)').waitFor()
  await row('get-sum').getByText('No allow rule matches').waitFor()
  await row('echo').getByText('visible').waitFor()
  await page.getByLabel('Claims of the token').fill('{"sub": "ada"')
  await page.getByRole('button', { name: 'Show the lists' }).click()
  await page.getByText('must be a JSON object').waitFor()
  await page.getByLabel('Claims of the token').fill('{"sub": "ada", "roles": ["admin"]}')
  await page.getByRole('button', { name: 'Show the lists' }).click()
  await row('get-sum').getByText('visible').waitFor()
  await expectAccessible(page)
  // The address has the client.
  await page.reload()
  await row('get-sum').getByText('visible').waitFor({ timeout: 60_000 })
})

/** Opens a session in the playground. `choose` selects an item of the list of tools. */
async function connected(gateway: Gateway) {
  const page = await browser.open(`${consoleUrl(gateway)}/mcp/playground`)
  await page.getByRole('button', { name: 'Connect' }).click()
  await page.getByRole('tab', { name: /^Tools \d/ }).waitFor({ timeout: 60_000 })
  const choose = async (tool: string) => {
    await page.getByLabel('Search tools').fill(tool)
    await page.getByRole('list', { name: 'tools' }).getByRole('button', { name: tool }).click()
  }
  return { page, choose, call: () => page.getByRole('button', { name: 'Call the tool' }).click() }
}

it('the playground calls tools with their arguments, and displays progress', async () => {
  const { page, choose, call } = await connected(await startMcpConsole())
  await choose('everything_echo')
  await call()
  await page.getByText('is required').waitFor()
  await page.getByRole('textbox', { name: /^Message/ }).fill('hello <b>there</b>')
  await call()
  await page.getByText('Echo: hello <b>there</b>').first().waitFor()
  await expectAccessible(page)
  await choose('everything_trigger-long-running-operation')
  await page.getByLabel(/^Duration/).fill('2')
  await call()
  await page.getByRole('progressbar').waitFor()
  await page.getByText('Long running operation completed').first().waitFor()
}, 180_000)

it('the playground answers elicitation and sampling of servers', async () => {
  const { page, choose, call } = await connected(await startMcpConsole())
  const dialog = page.getByRole('dialog')
  await choose('everything_trigger-elicitation-request')
  await call()
  await dialog.getByText('The server asks for input').waitFor()
  await expectAccessible(page)
  await dialog.getByRole('button', { name: 'Decline' }).click()
  await page
    .getByText(/declined/i)
    .first()
    .waitFor()
  await choose('everything_trigger-sampling-request')
  await page.getByRole('textbox', { name: /^Prompt/ }).fill('a poem')
  await call()
  await dialog.getByLabel('Answer of the model').fill('roses are red')
  await dialog.getByRole('button', { name: 'Send' }).click()
  await page
    .getByText(/roses are red/)
    .first()
    .waitFor()
}, 180_000)

it('the playground gets prompts, reads resources and displays messages', async () => {
  const { page } = await connected(await startMcpConsole())
  await page.getByRole('tab', { name: /^Prompts/ }).click()
  await page
    .getByRole('list', { name: 'prompts' })
    .getByRole('button', { name: /simple-prompt/ })
    .click()
  await page.getByRole('button', { name: 'Get the prompt' }).click()
  await page.getByText('success').first().waitFor()
  await page.getByRole('tab', { name: /^Resources/ }).click()
  await page.getByRole('list', { name: 'resources' }).getByRole('button').first().click()
  await page.getByRole('button', { name: 'Read the resource' }).click()
  await page.getByText('success').first().waitFor()
  await page
    .getByRole('button', { name: /sent resources\/read/ })
    .first()
    .click()
  await page.getByText('"method": "resources/read"').waitFor()
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Disconnect' }).click()
  await page.getByRole('button', { name: 'Connect' }).waitFor()
}, 180_000)
