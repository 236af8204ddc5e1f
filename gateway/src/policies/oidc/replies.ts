import { escapeHtml, htmlPage } from '../../identity/html-page.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Reply } from '../../net/http-client/send.ts'
import { refuse } from '../../pipeline/errors.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { acceptsHtml } from './navigation.ts'

export type LoginFailure = {
  status: number
  /** Stable code, for programs. */
  code: string
  /** Sentence without its full stop; no secrets, no text of the provider. */
  reason: string
  /** Path of a further attempt. */
  retry?: string | undefined
  headers?: Headers
}

/** Reply to a failed login: a page with the cause for browsers, JSON for scripts. */
export function failureReply(exchange: Exchange, failure: LoginFailure): Reply {
  const { status, code, reason, retry, headers = {} } = failure
  exchange.log.refusedBy = `oidc: ${reason}`
  exchange.log.errorCode ??= code
  if (!acceptsHtml(exchange.facts.request.headers)) return scriptReply(exchange, failure)
  const link = retry === undefined ? '' : `<p><a class="button" href="${escapeHtml(retry)}">Try again</a></p>`
  const advice = status >= 500 ? '<p>The log of the gateway has details.</p>' : ''
  return htmlPage({
    status,
    title: 'Login failed',
    content: `<p>${escapeHtml(capitalized(reason))}.</p>${advice}${link}`,
    headers,
  })
}

/** Reply to a request of a script without a session. */
export function loginRequired(exchange: Exchange, headers: Headers): Reply {
  exchange.log.refusedBy = 'oidc: no session'
  return scriptReply(exchange, {
    status: 401,
    code: 'login_required',
    reason: 'a login is required: open the address in a browser',
    headers: { 'www-authenticate': 'Cookie realm="login"', ...headers },
  })
}

export function loggedOutPage(again: string | undefined, headers: Headers): Reply {
  const link =
    again === undefined ? '' : `<p><a class="button" href="${escapeHtml(again)}">Log in again</a></p>`
  return htmlPage({
    status: 200,
    title: 'Logged out',
    content: `<p>Your session has ended.</p>${link}`,
    headers,
  })
}

/** Confirmation of a logout that another site requests. */
export function confirmationPage(path: string): Reply {
  return htmlPage({
    status: 200,
    title: 'Log out?',
    content: `<p>Another site sent you here.</p><form method="post" action="${escapeHtml(path)}"><button>Log out</button></form>`,
  })
}

function scriptReply(exchange: Exchange, { status, code, reason, headers = {} }: LoginFailure): Reply {
  if (exchange.errorFormat !== 'text') {
    const reply = refuse(exchange, { status, code, message: reason })
    return { ...reply, headers: { ...reply.headers, 'cache-control': 'no-store', ...headers } }
  }
  exchange.log.errorCode ??= code
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: Buffer.from(JSON.stringify({ error: code, message: reason })),
  }
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
