import { hash } from 'node:crypto'
import type { Headers } from '../net/http/headers.ts'
import type { Reply } from '../net/http-client/send.ts'

const style =
  ':root{color-scheme:light dark}' +
  'body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:10vh auto;padding:0 1rem;' +
  'color:#1a1a1a;background:#fff}' +
  'dt{font-weight:600;margin-top:.8rem}dd{margin:0;overflow-wrap:anywhere}' +
  'p{overflow-wrap:anywhere}a{color:#0b57d0}' +
  'button{font:inherit;padding:.5rem 1.2rem;margin:1.5rem .8rem 0 0;cursor:pointer}' +
  '@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181d}a{color:#8ab4f8}}'

/**
 * Headers that forbid scripts, assets and frames. `form-action` is absent: browsers apply it to redirects
 * after a form too, and forms of a login redirect to the provider and then to a client.
 */
const pageHeaders: Headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; base-uri 'none'; ` +
    "frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // Not `no-referrer`, with which browsers send `Origin: null` (Fetch standard, "append a request Origin
  // header").
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
}

export type HtmlPage = {
  status: number
  /** Escaped text. */
  title: string
  /** HTML with escaped values. */
  content: string
  headers?: Headers
}

/** Creates a page of a login, without script. */
export function htmlPage({ status, title, content, headers = {} }: HtmlPage): Reply {
  const html =
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>` +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<style>${style}</style></head><body><h1>${title}</h1>${content}</body></html>`
  return { status, headers: { ...pageHeaders, ...headers }, body: Buffer.from(html) }
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** Redirects the browser. URLs of a login are not cached and not sent as referrer. */
export function browserRedirect(location: string, headers: Headers = {}): Reply {
  return {
    status: 303,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', ...headers },
    body: undefined,
  }
}
