import { createHash } from 'node:crypto'
import { browserRedirect, escapeHtml, htmlPage } from '../../../identity/html-page.ts'
import type { ReplayCache } from '../../../identity/tokens/replay.ts'
import { readAll } from '../../../net/http/body.ts'
import { firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { digestOf, type LoginLinks, randomText } from './links.ts'
import type { LoginService } from './login-service.ts'
import { clientMetadata } from './oauth-client.ts'

/** Pages of the logins of one redirect URI. */
export type LoginPages = {
  /** Paths of the pages. */
  readonly start: string
  readonly callback: string
  readonly document: string
  handle(exchange: Exchange): Promise<Reply>
}

export type LoginPagesOptions = {
  /** URL of the MCP endpoint. */
  readonly publicUrl: URL
  readonly links: LoginLinks
  /** The service of a target; undefined for an unknown target. */
  serviceOf(target: string): LoginService | undefined
  /** Completed logins. */
  readonly used: ReplayCache
}

const cookieSeconds = 1_200
const maxFormBytes = 16 * 1024
const maxCodeChars = 4_096
const cookieForm = /^[A-Za-z0-9_-]{43}$/

/** Path of the MCP endpoint without a slash at the end. */
export function basePathOf({ pathname }: URL): string {
  return pathname.replace(/\/+$/, '')
}

/** Path of the document that describes the gateway as a client (OAuth Client ID Metadata Document). */
export function documentPathOf(publicUrl: URL): string {
  return `${basePathOf(publicUrl)}/oauth/client`
}

/** Creates the pages: the start of a login with the consent of the user, and the redirect URI. */
export function createLoginPages({ publicUrl, links, serviceOf, used }: LoginPagesOptions): LoginPages {
  const base = `${basePathOf(publicUrl)}/oauth`
  const start = `${base}/start`
  const callback = `${base}/callback`
  const document = documentPathOf(publicUrl)
  const metadata = JSON.stringify({
    client_id: publicUrl.origin + document,
    ...clientMetadata(publicUrl.origin + callback),
  })
  const isSecure = publicUrl.protocol === 'https:'
  // No other host of the domain can set a `__Host-` cookie (RFC 6265bis section 4.1.3).
  const cookieName = isSecure ? '__Host-tollgate-mcp-login' : 'tollgate-mcp-login'

  function setCookie(value: string): string {
    const attributes = `Path=/; Max-Age=${cookieSeconds}; HttpOnly; SameSite=Lax`
    return `${cookieName}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`
  }

  function cookieOf(headers: Headers): string | undefined {
    const found = (firstHeader(headers, 'cookie') ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${cookieName}=`))
    const value = found[0]?.slice(cookieName.length + 1)
    // Of two cookies with the name, one is injected.
    return found.length === 1 && value !== undefined && cookieForm.test(value) ? value : undefined
  }

  function showStart(exchange: Exchange): Reply {
    const text = new URLSearchParams(exchange.facts.request.query).get('link') ?? ''
    const link = links.readLink(text)
    if (link === undefined) return errorPage(exchange, 400, expired)
    return htmlPage({
      status: 200,
      title: 'Sign in to a tool server?',
      content:
        `<p>The gateway will use <strong>${escapeHtml(link.target)}</strong> with your account there, for calls of one user:</p><dl>` +
        `<dt>User of the gateway</dt><dd>${escapeHtml(link.user.name)}</dd>` +
        `<dt>Gateway</dt><dd>${escapeHtml(publicUrl.href)}</dd></dl>` +
        '<p>Continue only if you are this user and have just requested the link.</p>' +
        `<form method="post" action="${escapeHtml(start)}">` +
        `<input type="hidden" name="link" value="${escapeHtml(text)}">` +
        '<button>Continue</button></form>',
    })
  }

  async function begin(exchange: Exchange): Promise<Reply> {
    const { headers } = exchange.facts.request
    // A form of another site must not start a login.
    const origin = firstHeader(headers, 'origin')
    if (origin !== undefined && origin !== publicUrl.origin)
      return errorPage(exchange, 403, 'the form belongs to another site')
    const form = await readAll(exchange.body, maxFormBytes, 'request_too_large')
    const link = links.readLink(new URLSearchParams(form.toString()).get('link') ?? '')
    const service = link && serviceOf(link.target)
    if (link === undefined || service === undefined) return errorPage(exchange, 400, expired)
    // A new value for each login: one that was set before the login may be known to others.
    const cookie = randomText()
    const verifier = randomText()
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const result = await service.authorize(challenge)
    if (result.kind === 'failed') return errorPage(exchange, 502, result.reason)
    const address = new URL(result.address)
    const login = { ...link, verifier, origin: result.origin, browser: digestOf(cookie), id: randomText() }
    address.searchParams.set('state', links.sealState(login))
    return browserRedirect(address.href, { 'set-cookie': setCookie(cookie) })
  }

  async function complete(exchange: Exchange): Promise<Reply> {
    const { query, headers } = exchange.facts.request
    const parameters = new URLSearchParams(query)
    const isRepeated = new Set(parameters.keys()).size < [...parameters.keys()].length
    const state = isRepeated ? undefined : links.readState(parameters.get('state') ?? '')
    const service = state && serviceOf(state.target)
    if (state === undefined || service === undefined) return errorPage(exchange, 400, expired)
    const cookie = cookieOf(headers)
    if (cookie === undefined || digestOf(cookie) !== state.browser)
      return errorPage(
        exchange,
        403,
        'the sign-in started in another browser, a newer one replaced it, or cookies are blocked',
      )
    const code = parameters.get('code')
    if (code === null || code.length > maxCodeChars || parameters.has('error'))
      return errorPage(exchange, 403, 'the authorization server refused the sign-in')
    if (!used.tryUse(state.id)) return errorPage(exchange, 400, 'the sign-in is already complete')
    const { user, verifier, origin, target } = state
    const issuer = parameters.get('iss') ?? undefined
    const result = await service.redeem({ user: user.key, code, verifier, origin, issuer })
    if (result.kind === 'failed') return errorPage(exchange, 502, result.reason)
    return htmlPage({
      status: 200,
      title: 'Signed in',
      content: `<p>The gateway now uses <strong>${escapeHtml(target)}</strong> with your account. Close this page and return to your client.</p>`,
    })
  }

  function describeClient(): Reply {
    const headers = { 'content-type': 'application/json', 'cache-control': 'public, max-age=3600' }
    return { status: 200, headers, body: Buffer.from(metadata) }
  }

  return {
    ...{ start, callback, document },
    async handle(exchange) {
      const { path, method } = exchange.facts.request
      if (path === document) return method === 'GET' ? describeClient() : refuseMethod('GET')
      if (path === callback) return method === 'GET' ? complete(exchange) : refuseMethod('GET')
      if (method === 'POST') return begin(exchange)
      return method === 'GET' ? showStart(exchange) : refuseMethod('GET, POST')
    },
  }
}

const expired = 'the link is not valid or has expired'

function errorPage(exchange: Exchange, status: number, reason: string): Reply {
  exchange.log.refusedBy = `mcp login: ${reason}`
  return htmlPage({
    status,
    title: 'Sign-in failed',
    content: `<p>${escapeHtml(reason)}.</p><p>Go back to your client and request a new link.</p>`,
  })
}

function refuseMethod(allow: string): Reply {
  return { status: 405, headers: { allow }, body: undefined }
}
