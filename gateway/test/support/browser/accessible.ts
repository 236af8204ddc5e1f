import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Rules of WCAG 2.2, levels A and AA. */
const everyRule = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** Time for a page to fit a window of another size, on a busy machine. */
const layoutMs = 5_000
/** Rules on colours. The themes have the same elements. */
const colourRules = ['color-contrast', 'link-in-text-block']

/** Fails if axe finds a violation in the light or the dark theme. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const theme of ['light', 'dark'] as const) {
    const violations = await violationsIn(page, theme)
    expect({ theme, violations }).toEqual({ theme, violations: [] })
  }
}

/**
 * Displays the page in a theme and returns the violations as lines: rule, element, fix. In the dark theme,
 * only colours are checked.
 */
export async function violationsIn(page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  // The console sets its theme after an event of the browser; other pages have none.
  if ((await page.locator('html[data-theme]').count()) > 0)
    await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: 'attached' })
  await settled(page)
  return violationsOf(page, colorScheme === 'light' ? everyRule : colourRules)
}

/** Resolves after the frame of a new theme and its transitions, except endless animations. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))).then(() =>
    Promise.allSettled(document.getAnimations()
      .filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
      .map(({ finished }) => finished)))`)
}

async function violationsOf(page: Page, runOnly: readonly string[]): Promise<string[]> {
  // In a world of its own, which the content security policy of the page does not bind.
  const session = await page.context().newCDPSession(page)
  try {
    const { frameTree } = await session.send('Page.getFrameTree')
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
      frameId: frameTree.frame.id,
    })
    const expression = `${source};axe.run(document, ${JSON.stringify({ runOnly })}).then(
      ({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ': ' + failureSummary)))`
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      contextId,
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails !== undefined)
      throw new Error(exceptionDetails.exception?.description ?? 'axe failed')
    return result.value
  } finally {
    await session.detach()
  }
}

/** Fails if the page is wider than the window. */
export async function expectNoSideScroll(page: Page): Promise<void> {
  expect(await overflowOf(page)).toBe(0)
}

/** Pixels by which the content is wider than the window, which a change of its size may need time for. */
export async function overflowOf(page: Page): Promise<number> {
  const deadline = Date.now() + layoutMs
  for (;;) {
    // After the frame of the new width, with the effects of its media queries.
    const wide: number =
      await page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() =>
        resolve(document.documentElement.scrollWidth - document.documentElement.clientWidth))))`)
    if (wide <= 0 || Date.now() > deadline) return wide
    await delay(50)
  }
}
