import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'

// The command lines of the documentation, as a reader pastes them: one after another, in one shell.

function linesOf(page: string, after = ''): string {
  const text = readFileSync(fileURLToPath(new URL(`../../../docs/${page}`, import.meta.url)), 'utf8')
  const part = text.slice(text.indexOf(after))
  return [...part.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, lines = '']) => lines).join('')
}

/**
 * A gateway with the features of the quickstart: echo, an MCP server, strict keys, and SQLite next to its
 * file.
 */
function startHybrid() {
  return startGateway({
    config: { storage: { mode: 'hybrid' }, database: { url: 'sqlite://data/tollgate.db' } },
    llm: { models: [{ name: 'echo', provider: 'echo' }], policies: { apiKey: { keys: [] } } },
    mcp: { targets: [{ name: 'example', stdio: { cmd: 'node', args: ['server.mjs'] } }] },
  })
}

/** Runs the lines; the statuses of all calls in order. */
function statusesOf(lines: string, adminPort: number): number[] {
  const script = lines
    .replaceAll('127.0.0.1:15000', `127.0.0.1:${adminPort}`)
    .replaceAll(/^curl (?:-[is] )?/gm, "curl -s -o /dev/null -w '%{http_code}\\n' ")
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8', timeout: 20_000 })
  expect(stderr).toBe('')
  return stdout.trim().split('\n').map(Number)
}

it('creates, lists, updates, tries and deletes as documented on the page of the config API', async () => {
  const { adminPort } = await startHybrid()
  const statuses = statusesOf(linesOf('config-api.md'), adminPort)
  // The one that is tried has a mistake in it.
  const tried = statuses.indexOf(422)
  expect(statuses.toSpliced(tried, 1)).toEqual(Array<number>(20).fill(200))
  expect(tried).toBe(11)
})

it('issues, rotates, lists and revokes keys as documented on the page of virtual keys', async () => {
  const { adminPort } = await startHybrid()
  const keys = `http://127.0.0.1:${adminPort}/api/keys`
  const firstId = `id=$(curl -sS '${keys}' | sed 's/^{"keys":\\[{"id":"\\([^"]*\\).*/\\1/')`
  const lines = linesOf('virtual-keys.md', '## Issue a key').replace(/^id=\.\.\..*$/m, firstId)
  // Two new keys, the rotation and removal of one, the list, and a read of the removed key.
  expect(statusesOf(lines, adminPort)).toEqual([200, 200, 200, 200, 200, 404])
  const listed: unknown = await (await fetch(keys)).json()
  expect(listed).toMatchObject({ keys: [{ state: 'active' }] })
})
