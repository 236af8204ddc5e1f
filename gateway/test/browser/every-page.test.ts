import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { checkoutFolder } from '../../../scripts/build-ui.ts'
import { overflowOf, violationsIn } from '../support/browser/accessible.ts'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, recorded, startFilledGateway } from '../support/browser/filled-gateway.ts'

const browser = useBrowser()

/** Bytes of script, compressed with gzip. */
const maxFirstLoad = 150_000
const maxPage = 300_000

const everyPageTimeoutMs = 400_000

it(
  'every page is accessible in both themes, fits narrow and wide windows, and has a small amount of script',
  async () => {
    const gateway = await startFilledGateway()
    await recorded(gateway)
    const page = await browser.open(`${consoleUrl(gateway)}/start`)
    const problems: string[] = []
    for (const path of await pathsOf(page)) {
      await visit(page, path)
      const bytes = await scriptBytes(page)
      if (bytes > maxPage) problems.push(`${path} has ${bytes} bytes of script`)
      for (const theme of ['light', 'dark'] as const)
        for (const violation of await violationsIn(page, theme))
          problems.push(`${path} ${theme}: ${violation}`)
      for (const width of [320, 720, 2_560]) {
        await page.setViewportSize({ width, height: 844 })
        const wide = await overflowOf(page)
        if (wide > 0) problems.push(`${path} is ${wide} px wider than ${width} px`)
      }
      await page.setViewportSize({ width: 1_440, height: 900 })
    }
    expect(problems).toEqual([])
    expect(await firstLoadBytes(page)).toBeLessThanOrEqual(maxFirstLoad)
  },
  everyPageTimeoutMs,
)

/** Addresses of the sidebar, below `/ui`. */
async function pathsOf(page: Page): Promise<string[]> {
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
  await links.first().waitFor()
  const addresses = await links.evaluateAll((elements) =>
    elements.map((link) => link.getAttribute('href') ?? ''),
  )
  return addresses.map((address) => address.replace(/^\/ui/, '') || '/')
}

async function visit(page: Page, path: string): Promise<void> {
  await page.goto(new URL(`/ui${path}`, page.url()).href)
  await settled(page)
}

/** Resolves when the page is displayed and its first data has arrived. */
async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('[aria-label="Loading"]').first().waitFor({ state: 'detached' })
}

/** Scripts of the document, which is a new one for each visited page. */
async function scriptBytes(page: Page): Promise<number> {
  const names: string[] = await page.evaluate(
    "performance.getEntriesByType('resource').map(({ name }) => name)",
  )
  return sum([...new Set(names.filter((name) => name.endsWith('.js')))])
}

/** Scripts that the document itself names: those before any page is chosen. */
async function firstLoadBytes(page: Page): Promise<number> {
  const text = await (await fetch(page.url())).text()
  const addresses = [...text.matchAll(/(?:src|href)="([^"]+\.js)"/g)].map(
    ([, address = '']) => new URL(address, page.url()).href,
  )
  expect(addresses).not.toEqual([])
  return sum(addresses)
}

function sum(addresses: readonly string[]): number {
  return addresses
    .map((address) => compressedSize(new URL(address).pathname.replace(/^\/ui\//, '')))
    .reduce((total, bytes) => total + bytes, 0)
}

function compressedSize(file: string): number {
  const path = join(checkoutFolder, file)
  // The smallest files have no compressed copy.
  return (statSync(`${path}.gz`, { throwIfNoEntry: false }) ?? statSync(path)).size
}
