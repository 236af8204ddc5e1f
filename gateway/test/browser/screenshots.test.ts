import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, it } from 'vitest'
import { useBrowser } from '../support/browser/browser.ts'
import {
  consoleUrl,
  type FilledGateway,
  recorded,
  startFilledGateway,
} from '../support/browser/filled-gateway.ts'

// Pictures of the console: `npm run screenshots`. Those of the documentation are few; those for a review are
// of every page in both themes, in `.cache/screenshots`.

const browser = useBrowser()

const root = fileURLToPath(new URL('../../..', import.meta.url))
const documented = join(root, 'docs/images')
const reviewed = join(root, '.cache/screenshots')

const timeoutMs = 600_000

/** Pictures of the documentation, by the name of the file. Their pages display no path of this machine. */
const pictures = [
  { name: 'overview', path: '/', theme: 'light' },
  { name: 'overview-dark', path: '/', theme: 'dark' },
  { name: 'models', path: '/llm/models', theme: 'light' },
  { name: 'keys', path: '/llm/keys', theme: 'light' },
  { name: 'guards', path: '/llm/guards', theme: 'light' },
  { name: 'requests', path: '/requests', theme: 'light' },
  { name: 'usage', path: '/usage', theme: 'light' },
] as const

describe.runIf(process.env['UPDATE_SCREENSHOTS'] === '1')('screenshots', () => {
  it(
    'of the documentation',
    async () => {
      const gateway = await start()
      mkdirSync(documented, { recursive: true })
      for (const { name, path, theme } of pictures)
        await capture(gateway, { path, theme, file: join(documented, `console-${name}.png`) })
    },
    timeoutMs,
  )

  it(
    'of every page',
    async () => {
      const gateway = await start()
      mkdirSync(reviewed, { recursive: true })
      const page = await browser.open(`${consoleUrl(gateway)}/`)
      const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
      await links.first().waitFor()
      const paths = await links.evaluateAll((found) => found.map((link) => link.getAttribute('href') ?? ''))
      for (const address of paths) {
        const path = address.replace(/^\/ui/, '')
        const name = path.replace(/^\//, '').replaceAll('/', '-') || 'overview'
        for (const theme of ['light', 'dark'] as const)
          await capture(gateway, { path, theme, file: join(reviewed, `${name}-${theme}.png`) })
      }
    },
    timeoutMs,
  )
})

async function start(): Promise<FilledGateway> {
  const gateway = await startFilledGateway({ keys: 120, rows: 3_000 })
  await recorded(gateway)
  return gateway
}

type Capture = { path: string; theme: 'light' | 'dark'; file: string }

async function capture(gateway: FilledGateway, { path, theme, file }: Capture): Promise<void> {
  const page = await browser.open(`${consoleUrl(gateway)}${path}`, { theme, size: [1_280, 800] })
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('[aria-label="Loading"]').first().waitFor({ state: 'detached' })
  // Charts are drawn after their data has arrived.
  await page.waitForLoadState('load')
  await page.evaluate('document.fonts.ready.then(() => new Promise((resolve) => setTimeout(resolve, 500)))')
  await page.screenshot({ path: file })
  await page.close()
}
