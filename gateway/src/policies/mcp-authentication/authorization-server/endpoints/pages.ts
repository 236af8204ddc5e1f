import { escapeHtml, htmlPage } from '../../../../identity/html-page.ts'
import type { Reply } from '../../../../net/http-client/send.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import type { Client } from '../clients/client.ts'
import type { RedirectTarget } from '../clients/redirect-targets.ts'

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
  return htmlPage({
    status: 200,
    title: 'Allow access?',
    content:
      `<p><strong>${escapeHtml(name)}</strong> requests access on your behalf.</p><dl>` +
      `<dt>Client</dt><dd>${escapeHtml(publisher)}</dd>` +
      `<dt>Access to</dt><dd>${escapeHtml(resource)}</dd>` +
      `<dt>Redirect to</dt><dd>${escapeHtml(targetText(target))}</dd>` +
      `<dt>Scopes</dt><dd>${scopes.length === 0 ? 'none' : escapeHtml(scopes.join(', '))}</dd></dl>` +
      '<p>Allow access only if you have just started to sign in with this client.</p>' +
      `<form method="post" action="${escapeHtml(action)}">` +
      `<input type="hidden" name="request" value="${escapeHtml(request)}">` +
      '<button name="decision" value="allow">Allow</button>' +
      '<button name="decision" value="deny">Deny</button></form>',
    headers: { 'set-cookie': cookie },
  })
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
  return htmlPage({
    status,
    title: 'Sign-in failed',
    content: `<p>${escapeHtml(reason)}.</p><p>Go back to the client and start again.</p>`,
  })
}

/** Error page for requests of websites, with a link that returns the error to the website. */
export function returnPage(reason: string, { label }: RedirectTarget, location: string): Reply {
  return htmlPage({
    status: 400,
    title: 'Sign-in failed',
    content: `<p>${escapeHtml(reason)}.</p><p><a href="${escapeHtml(location)}" rel="noreferrer">Go back to ${escapeHtml(label)}</a></p>`,
  })
}
