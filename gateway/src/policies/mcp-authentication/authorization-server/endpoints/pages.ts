import { hash } from 'node:crypto'
import type { Headers } from '../../../../net/http/headers.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import type { Client } from '../clients/client.ts'
import type { RedirectTarget } from '../clients/redirect-targets.ts'

const style =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:10vh auto;padding:0 1rem;color:#1a1a1a;background:#fff}' +
  'dt{font-weight:600;margin-top:.8rem}dd{margin:0;overflow-wrap:anywhere}' +
  'button{font:inherit;padding:.5rem 1.2rem;margin:1.5rem .8rem 0 0;cursor:pointer}'

/**
 * Headers that forbid scripts, assets and frames. `form-action` is absent: browsers apply it to redirects
 * after a form too, and the form redirects to the provider and then to the client.
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

export type ConsentPage = {
  client: Client
  target: RedirectTarget
  scopes: readonly string[]
  resource: string
  /** URL of the form's target. */
  action: string
  /** Sealed request, a field of the form. */
  request: string
  cookie: string
}

/** Consent page, on which the user allows or denies access to a client. */
export function consentPage({
  client,
  target,
  scopes,
  resource,
  action,
  request,
  cookie,
}: ConsentPage): Reply {
  const name = client.name ?? 'A client without a name'
  const publisher =
    client.publisher === undefined
      ? 'The client registered itself. Its name is not verified.'
      : `Published by ${client.publisher}`
  return page(
    200,
    `Allow access?`,
    `<p><strong>${escaped(name)}</strong> requests access on your behalf.</p><dl>` +
      `<dt>Client</dt><dd>${escaped(publisher)}</dd>` +
      `<dt>Access to</dt><dd>${escaped(resource)}</dd>` +
      `<dt>Redirect to</dt><dd>${escaped(targetText(target))}</dd>` +
      `<dt>Scopes</dt><dd>${scopes.length === 0 ? 'none' : escaped(scopes.join(', '))}</dd></dl>` +
      '<p>Allow access only if you have just started to sign in with this client.</p>' +
      `<form method="post" action="${escaped(action)}">` +
      `<input type="hidden" name="request" value="${escaped(request)}">` +
      '<button name="decision" value="allow">Allow</button>' +
      '<button name="decision" value="deny">Deny</button></form>',
    { 'set-cookie': cookie },
  )
}

function targetText({ kind, label }: RedirectTarget): string {
  switch (kind) {
    case 'web':
      return label
    case 'loopback':
      return `a program on this computer (${label})`
    case 'app':
      return `the app for ${label} addresses`
  }
}

/** Error page for errors that must not be sent to a redirect URI. The reason contains no secret. */
export function errorPage(exchange: Exchange, status: number, reason: string): Reply {
  exchange.log.refusedBy = `mcp-authentication: ${reason}`
  return page(
    status,
    'Sign-in failed',
    `<p>${escaped(reason)}.</p><p>Go back to the client and start again.</p>`,
  )
}

/** Error page for requests of websites, with a link that returns the error to the website. */
export function returnPage(reason: string, { label }: RedirectTarget, location: string): Reply {
  return page(
    400,
    'Sign-in failed',
    `<p>${escaped(reason)}.</p><p><a href="${escaped(location)}" rel="noreferrer">Go back to ${escaped(label)}</a></p>`,
  )
}

/** Redirects the browser. URLs of the flow are not cached and not sent as referrer. */
export function browserRedirect(location: string): Reply {
  return {
    status: 303,
    headers: { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' },
    body: undefined,
  }
}

function page(status: number, title: string, content: string, headers: Headers = {}): Reply {
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

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '')
}
