import { escapeHtml, htmlPage } from '../../identity/html-page.ts'
import { discard } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'
import { isNavigation } from './navigation.ts'

/** Replaces a refusal of the console by a page that names the user, for browsers that open a page. */
export const deniedPage: Policy = {
  name: 'denied page',
  onReply(exchange, reply) {
    const { request } = exchange.facts
    const isConsole = request.path === '/ui' || request.path.startsWith('/ui/')
    if (reply.status !== 403 || !isConsole || !isNavigation(request)) return reply
    discard(reply)
    const cookies = reply.headers['set-cookie']
    return htmlPage({
      status: 403,
      title: 'Access denied',
      content: contentOf(exchange),
      ...(cookies !== undefined && { headers: { 'set-cookie': cookies } }),
    })
  },
}

function contentOf({ facts: { jwt, apiKey }, auth: { session } }: Exchange): string {
  const { name, email, sub } = { ...apiKey, ...jwt }
  const user = [name, email, sub].find((value) => typeof value === 'string')
  const logout = session?.logoutPath
  return (
    (user === undefined ? '' : `<p>You are logged in as <strong>${escapeHtml(user)}</strong>.</p>`) +
    '<p>Your role does not permit the console. An administrator of the gateway can change ' +
    '<code>ui.policies.authorization</code>.</p>' +
    (logout === undefined
      ? ''
      : `<p><a class="button" href="${escapeHtml(logout)}?return=%2Fui%2F">Log out</a></p>`)
  )
}
