import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { findChromium } from './chromium.ts'

/** Appearance of a page. */
export type Appearance = {
  theme?: 'light' | 'dark'
  /** Width and height in CSS pixels; default 1440 x 900. */
  size?: readonly [width: number, height: number]
  /** Credentials, cookies, locale and other properties of the context. */
  context?: BrowserContextOptions
}

/** A page that fails the test if its console has an error, a request fails, or the policy is violated. */
export type WatchedPage = Page & {
  /** Problems so far: the test fails at its end if there are any. */
  readonly problems: readonly string[]
  /** Excludes problems before they occur: browsers report a refused save as an error. */
  expectProblem(pattern: RegExp): void
}

/** The browser of a test file. */
export type TestBrowser = {
  /** Opens an address in a context of its own: no cookies, no storage of other tests. */
  open(url: string, appearance?: Appearance): Promise<WatchedPage>
  /** Opens a further page with the cookies and the storage of another. */
  openBeside(page: Page, url: string): Promise<WatchedPage>
}

/** Time for a page to become interactive on a busy machine. */
const navigationTimeoutMs = 30_000
/** Time for an element to appear or to become enabled. */
const actionTimeoutMs = 15_000

const defaultSize = [1440, 900] as const

/** Starts a browser before the tests of the file, and closes the pages of each test after it. */
export function useBrowser(): TestBrowser {
  let browser: Browser | undefined
  const watched: WatchedPage[] = []

  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser?.close())
  afterEach(async () => {
    const pages = watched.splice(0)
    const problems = pages.flatMap((page) => page.problems)
    // A browser that has ended has closed its pages.
    await Promise.allSettled(pages.map((page) => page.context().close()))
    if (problems.length > 0) throw new Error(`the page has problems:\n${problems.join('\n')}`)
  })

  async function watch(page: Page, url: string): Promise<WatchedPage> {
    const result = watchPage(page)
    watched.push(result)
    await result.goto(url)
    return result
  }

  return {
    async open(url, appearance = {}) {
      // On machines with little memory a browser may end: the next test has a new one.
      if (!browser?.isConnected()) browser = await launch()
      const context = await browser.newContext(contextOptions(appearance))
      context.setDefaultTimeout(actionTimeoutMs)
      context.setDefaultNavigationTimeout(navigationTimeoutMs)
      return watch(await context.newPage(), url)
    },
    openBeside: async (page, url) => watch(await page.context().newPage(), url),
  }
}

/** Starts a browser, for tests and for scripts. */
export async function launch(): Promise<Browser> {
  const { path, env } = findChromium()
  return chromium.launch({
    executablePath: path,
    env: { ...definedOf(process.env), ...env },
    // Containers and root have no user namespaces for the sandbox. All pages are those of the test.
    chromiumSandbox: false,
    args: ['--disable-dev-shm-usage', '--disable-gpu', '--font-render-hinting=none'],
  })
}

export function contextOptions({ theme, size = defaultSize, context }: Appearance): BrowserContextOptions {
  const [width, height] = size
  return {
    viewport: { width, height },
    colorScheme: theme ?? 'light',
    // Contrast and screenshots are those of the final state.
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    ...context,
  }
}

function watchPage(page: Page): WatchedPage {
  const problems: string[] = []
  const expected: RegExp[] = []
  const report = (problem: string) => {
    if (!expected.some((pattern) => pattern.test(problem))) problems.push(problem)
  }
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return
    report(`console ${message.type()}: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', (error) => report(`uncaught error: ${error.stack ?? error.message}`))
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'failed'
    // A page that is left cancels its requests and its event streams.
    if (reason !== 'net::ERR_ABORTED') report(`request: ${request.method()} ${request.url()} ${reason}`)
  })
  page.on('crash', () => report('the page crashed'))
  return Object.assign(page, {
    problems,
    expectProblem(pattern: RegExp) {
      expected.push(pattern)
    },
  })
}

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
