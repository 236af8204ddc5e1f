import { hash } from 'node:crypto'
import type { Headers } from '../net/http/headers.ts'
import type { Reply } from '../net/http-client/send.ts'

/** Colours as in the console. */
const style =
  ':root{color-scheme:light dark;--canvas:oklch(.982 .003 220);--surface:#fff;--line:oklch(.905 .008 220);' +
  '--ink:oklch(.22 .02 235);--soft:oklch(.42 .02 230);--accent:oklch(.475 .085 200);--on:#fff}' +
  '@media(prefers-color-scheme:dark){:root{--canvas:oklch(.178 .012 232);--surface:oklch(.215 .014 232);' +
  '--line:oklch(.3 .016 230);--ink:oklch(.95 .006 220);--soft:oklch(.79 .014 222);' +
  '--accent:oklch(.81 .115 188);--on:oklch(.2 .03 210)}}' +
  'body{font:15px/1.55 system-ui,sans-serif;margin:0;padding:1rem;min-height:100dvh;box-sizing:border-box;' +
  'display:grid;place-items:center;color:var(--ink);background:var(--canvas)}' +
  'main{box-sizing:border-box;width:100%;max-width:30rem;padding:1.75rem;border:1px solid var(--line);' +
  'border-radius:.75rem;background:var(--surface);overflow-wrap:anywhere}' +
  'h1{margin:0 0 .75rem;font-size:1.25rem;line-height:1.3}p{margin:.5rem 0;color:var(--soft)}' +
  'strong,code{color:var(--ink)}dt{font-weight:600;margin-top:.8rem}dd{margin:0;color:var(--soft)}' +
  'a{color:var(--accent)}' +
  'button,.button{display:inline-block;font:inherit;font-weight:600;padding:.4rem .9rem;margin:1rem .5rem 0 0;' +
  'border:1px solid var(--accent);border-radius:.4rem;color:var(--on);background:var(--accent);' +
  'text-decoration:none;cursor:pointer}button+button{color:var(--ink);background:none;border-color:var(--line)}' +
  ':focus-visible{outline:2px solid var(--accent);outline-offset:2px}'

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
    `<style>${style}</style></head><body><main><h1>${title}</h1>${content}</main></body></html>`
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
