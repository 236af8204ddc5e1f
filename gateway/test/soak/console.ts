import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { ensureUi } from '../../../scripts/build-ui.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { secretPaths } from '../../src/resources/secrets/secret-paths.ts'
import { createSqliteStore } from '../../src/resources/stores/sqlite/sqlite.ts'
import { contextOptions, launch } from '../support/browser/browser.ts'
import { fillLedger } from '../support/fill-ledger.ts'
import { freePorts } from '../support/free-port.ts'

/**
 * The console on a large gateway: time until each page is interactive, its slowest request, time of a key in
 * the editor of a long file, and CPU time of the gateway for ten open pages. `--database` names an SQLite
 * file that an earlier run has filled; the run keeps it.
 */

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    database: { type: 'string' },
  },
})
const { short } = values
const size = short
  ? { rows: 20_000, keys: 2_000, routes: 500 }
  : { rows: 10_000_000, keys: 100_000, routes: 10_000 }

const limits = { interactiveMs: 1_000, requestMs: 200, keyMs: 50 }
const openPages = 10
const dayMs = 86_400_000

type Gateway = { readonly url: string; cpuMs(): number; end(): Promise<void> }

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-console-'))
  try {
    await ensureUi()
    const path = values.database ?? join(folder, 'console.db')
    await fill(path)
    const browser = await launch()
    const gateway = await start(folder, { path, routes: size.routes })
    const slow = await measurePages(browser, gateway)
    await measurePolling(browser, gateway)
    await gateway.end()
    const small = await start(folder, { path: join(folder, 'typing.db'), routes: 190 })
    slow.push(...(await measureTyping(browser, small)))
    await small.end()
    await browser.close()
    // Times of a busy machine are no failure of a test.
    if (slow.length > 0 && !short) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function fill(path: string): Promise<void> {
  const store = createSqliteStore({ path, secretPaths, clock: systemClock })
  const { generation, changed } = await store.read(undefined)
  const present = changed.length
  await store.write(generation, async () =>
    Array.from({ length: Math.max(0, size.keys - present) }, (_, index) => {
      const id = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
      const metadata = { name: `service ${index}`, group: `team ${index % 50}`, user: `user-${index}`, id }
      return { op: 'put' as const, kind: 'llm.apiKey', id, value: { key: `tg-console-${index}`, metadata } }
    }),
  )
  await store.close()
  if (values.database === undefined || present === 0)
    await fillLedger(`sqlite://${path}`, size.rows, { endTime: Math.floor(Date.now() / dayMs) * dayMs })
  print(`${size.keys} keys, ${size.routes} routes, ${size.rows} requests`)
}

async function start(folder: string, options: { path: string; routes: number }): Promise<Gateway> {
  const [port = 0, admin = 0, stats = 0, readiness = 0] = await freePorts(4)
  const file = join(folder, `${port}.yaml`)
  writeFileSync(file, fileText({ port, admin, stats, readiness }, options))
  const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const log = openSync(join(folder, `${port}.log`), 'a')
  const child = spawn(process.execPath, [program, '-f', file], { stdio: ['ignore', log, 'inherit'] })
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const url = `http://127.0.0.1:${admin}`
  while (!(await answers(`http://127.0.0.1:${readiness}/healthz/ready`))) {
    if (child.exitCode !== null)
      throw new Error(`the gateway ended: ${readFileSync(join(folder, `${port}.log`))}`)
    await delay(50)
  }
  return {
    url,
    cpuMs: () => cpuMs(child.pid ?? 0),
    async end() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** A file as people write it, a line for each field. */
function fileText(
  ports: { port: number; admin: number; stats: number; readiness: number },
  { path, routes }: { path: string; routes: number },
): string {
  const lines = Array.from(
    { length: routes },
    (_, index) => `  - name: route-${index}
    hostnames: [host-${index % 100}.example.com]
    matches:
      - path:
          pathPrefix: /service-${index}
    policies:
      timeout:
        requestTimeout: 10s
    backends:
      - host: 127.0.0.1:9`,
  )
  return `config:
  bindAddress: 127.0.0.1
  adminAddr: 127.0.0.1:${ports.admin}
  statsAddr: 127.0.0.1:${ports.stats}
  readinessAddr: 127.0.0.1:${ports.readiness}
  storage: { mode: hybrid }
  database: { url: "sqlite://${path}" }
gateways:
  default: { port: ${ports.port} }
llm:
  gateways: default
  models:
    - { name: gpt-5, provider: echo }
    - { name: echo-*, provider: echo }
  policies:
    apiKey: { mode: strict, keys: [] }
    localRateLimit: [{ requests: 600, unit: Minutes, key: apiKey.id }]
    budgets: [{ name: team, limit: { usd: 500 }, window: month, key: apiKey.group }]
routes:
${lines.join('\n')}
`
}

/** Opens each page in a context of its own, with an empty cache. Returns the pages beyond a limit. */
async function measurePages(browser: Browser, gateway: Gateway): Promise<string[]> {
  const slow: string[] = []
  for (const path of await pathsOf(browser, gateway)) {
    const times: number[] = []
    const requests: SlowRequest[] = []
    for (let run = 0; run < (short ? 1 : 3); run += 1) {
      const context = await browser.newContext(contextOptions({}))
      const page = await context.newPage()
      await page.goto(`${gateway.url}/ui${path}`, { waitUntil: 'commit' })
      times.push(await interactiveMs(page))
      await delay(300)
      requests.push(await slowestRequest(page))
      await context.close()
    }
    const interactive = medianOf(times)
    const request = requests.toSorted((one, other) => one.ms - other.ms)[Math.floor(requests.length / 2)]
    const isSlow = interactive > limits.interactiveMs || (request?.ms ?? 0) > limits.requestMs
    if (isSlow) slow.push(path)
    print(
      `${path.padEnd(24)} interactive ${ms(interactive)}, slowest request ${ms(request?.ms ?? 0)} ${request?.name ?? ''}${isSlow ? '  (limit)' : ''}`,
    )
  }
  return slow
}

async function pathsOf(browser: Browser, { url }: Gateway): Promise<string[]> {
  const page = await browser.newPage()
  await page.goto(`${url}/ui/start`)
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
  await links.first().waitFor()
  const addresses = await links.evaluateAll((elements) =>
    elements.map((link) => link.getAttribute('href') ?? ''),
  )
  await page.close()
  const paths = addresses.map((address) => address.replace(/^\/ui/, '') || '/')
  return [...paths, '/llm/keys?search=service+9999', '/traffic/routes?search=route-9999']
}

/** Milliseconds from the navigation to a page with its heading and without places that load. */
async function interactiveMs(page: Page): Promise<number> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  const pending = page.locator('[aria-label="Loading"], [aria-busy="true"]')
  while ((await pending.count()) > 0) await delay(5)
  return page.evaluate('performance.now()')
}

type SlowRequest = { readonly name: string; readonly ms: number }

/** Slowest finished request of the API; streams have no end. */
async function slowestRequest(page: Page): Promise<SlowRequest> {
  const entries: { name: string; duration: number }[] = await page.evaluate(
    `performance.getEntriesByType('resource').map(({ name, duration }) => ({ name, duration }))`,
  )
  return entries
    .filter(({ name }) => name.includes('/api/') && !name.includes('/tail'))
    .map(({ name, duration }) => ({ name: new URL(name).pathname, ms: duration }))
    .reduce((slowest, entry) => (entry.ms > slowest.ms ? entry : slowest), { name: '', ms: 0 })
}

/** CPU time that open pages cost the gateway, in shares of one core. */
async function measurePolling(browser: Browser, gateway: Gateway): Promise<void> {
  const durationMs = short ? 5_000 : 30_000
  const idle = await cpuShare(gateway, durationMs)
  const contexts = await Promise.all(
    Array.from({ length: openPages }, () => browser.newContext(contextOptions({}))),
  )
  for (const context of contexts) await (await context.newPage()).goto(`${gateway.url}/ui/`)
  await delay(5_000)
  const open = await cpuShare(gateway, durationMs)
  await Promise.all(contexts.map((context) => context.close()))
  print(
    `CPU of the gateway without traffic: ${percent(idle)} of a core, with ${openPages} open overviews ${percent(open)}`,
  )
}

async function cpuShare(gateway: Gateway, durationMs: number): Promise<number> {
  const before = gateway.cpuMs()
  await delay(durationMs)
  return (gateway.cpuMs() - before) / durationMs
}

/** Time from a key to the next frame in the editor of the configuration file, with about 2,000 lines. */
async function measureTyping(browser: Browser, gateway: Gateway): Promise<string[]> {
  const page = await browser.newPage()
  await page.goto(`${gateway.url}/ui/tools/configuration`)
  const editor = page.locator('.cm-content').first()
  await editor.waitFor({ timeout: 60_000 })
  await editor.click()
  await page.keyboard.press('Control+End')
  await page.evaluate(`(() => {
    window.keyTimes = []
    document.addEventListener('keydown', () => {
      const start = performance.now()
      requestAnimationFrame(() => setTimeout(() => window.keyTimes.push(performance.now() - start)))
    }, true)
  })()`)
  for (const letter of '# a comment of some length at the end of the file') {
    await page.keyboard.press(letter === ' ' ? 'Space' : letter)
    await delay(60)
  }
  const times: number[] = await page.evaluate('window.keyTimes')
  await page.close()
  const p95 = times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.95)] ?? 0
  print(`a key in the editor: median ${ms(medianOf(times))}, p95 ${ms(p95)} (${times.length} keys)`)
  return p95 > limits.keyMs ? ['typing'] : []
}

/** User and system time of a process with its threads (Linux, 100 ticks per second). */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )
}

function medianOf(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0
}

function ms(value: number): string {
  return `${value.toFixed(0).padStart(5)} ms`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

await main()
