import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useBrowser } from '../support/browser/browser.ts'
import { consoleUrl, recorded, startFilledGateway } from '../support/browser/filled-gateway.ts'

// Texts of clients and of other editors are inert on every page.

const browser = useBrowser()

const timeoutMs = 300_000

/** Each would set `window.hostile` if the console interpreted it. */
const texts = [
  '<img src=x onerror="window.hostile=1">',
  '"><svg onload=window.hostile=1><script>window.hostile=1</script>',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a text, which templates of other products evaluate
  '${window.hostile=1} {{constructor.constructor("window.hostile=1")()}}',
  'javascript:window.hostile=1',
  '\u202egnp.exe שלום مرحبا\u202c',
  '👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301\u0301\u0301\u0301',
  `long ${'x'.repeat(10_000)}`,
]

/** Names are parts of addresses, whose length is limited. */
const names = texts.map((text) => text.slice(0, 200))

/** The configuration replaces variables; `$$` stands for a dollar sign. */
const written = (text: string) => text.replaceAll('$', '$$$$')

function hostileConfig() {
  const shown = names.map(written)
  return {
    routes: shown.map((name, index) => ({
      name,
      matches: [{ path: { exact: `/hostile/${index}` } }],
      policies: { directResponse: { status: 200, body: written(texts[index] ?? '') } },
    })),
    backends: shown.map((name) => ({ name, host: 'localhost:9' })),
    llm: {
      providers: shown.map((name) => ({ name, provider: 'echo' })),
      models: [...shown.map((name) => ({ name, provider: 'echo' })), { name: 'echo', provider: 'echo' }],
      virtualModels: shown.map((name) => ({
        name: `virtual ${name}`,
        routing: { weighted: { targets: [{ model: 'echo', weight: 1 }] } },
      })),
      policies: {
        apiKey: {
          keys: texts.map(written).map((text, index) => ({
            key: `tg-hostile-${index}`,
            metadata: { name: text, user: text, group: text, note: text },
          })),
        },
        guardrails: {
          request: shown.map((name) => ({ name, regex: { rules: [{ pattern: 'never seen' }] } })),
        },
      },
    },
  }
}

it(
  'texts of clients and configuration are inert on every page',
  async () => {
    const gateway = await startFilledGateway({ keys: 0, rows: 0, config: hostileConfig() })
    for (const [index, text] of texts.entries()) {
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': text.replace(/[^\x20-\x7e]/g, '?').slice(0, 500),
          authorization: `Bearer tg-hostile-${index}`,
        },
        body: JSON.stringify({ model: names[index], messages: [{ role: 'user', content: text }] }),
      })
      await reply.arrayBuffer()
    }
    await recorded(gateway, texts.length)
    const page = await browser.open(`${consoleUrl(gateway)}/`, { size: [1_280, 2_000] })
    page.on('dialog', (dialog) => void dialog.dismiss())
    const paths = [...(await linksOf(page)), ...(await detailsOf(gateway.adminPort))]
    expect(paths.length).toBeGreaterThan(25)
    const interpreted: string[] = []
    for (const path of paths) {
      await page.goto(new URL(path, page.url()).href)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.locator('[aria-label="Loading"]').first().waitFor({ state: 'detached' })
      if (await isInterpreted(page)) interpreted.push(path)
    }
    expect(interpreted).toEqual([])
    await page.goto(`${consoleUrl(gateway)}/llm/keys`)
    await page
      .getByText(texts[0] ?? '')
      .first()
      .waitFor()
  },
  timeoutMs,
)

async function linksOf(page: Page): Promise<string[]> {
  const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link')
  await links.first().waitFor()
  return links.evaluateAll((elements) => elements.map((link) => link.getAttribute('href') ?? ''))
}

/** Pages of single records: the first hostile ones of each kind, and of each request. */
async function detailsOf(adminPort: number): Promise<string[]> {
  const api = `http://127.0.0.1:${adminPort}/api`
  const reply = await fetch(`${api}/logs/search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ limit: texts.length }),
  })
  const { logs = [] }: { logs?: { id: string }[] } = JSON.parse(await reply.text())
  const { keys = [] }: { keys?: { id: string }[] } = JSON.parse(await (await fetch(`${api}/keys`)).text())
  return [
    ...logs.map(({ id }) => `/ui/requests/${id}`),
    ...keys.slice(0, texts.length).map(({ id }) => `/ui/llm/keys/${encodeURIComponent(id)}`),
    ...names.flatMap((name) => {
      const id = encodeURIComponent(name)
      return [`/ui/llm/models/${id}`, `/ui/traffic/routes/${id}`, `/ui/llm/providers/${id}`]
    }),
  ]
}

/** Whether a script ran, or markup of a text became an element. */
function isInterpreted(page: Page): Promise<boolean> {
  return page.evaluate(
    'window.hostile !== undefined || document.querySelector(\'img[onerror], svg[onload], a[href^="javascript:"]\') !== null',
  )
}
