import type { Exchange, Facts } from '../../pipeline/exchange.ts'
import type { Permits } from '../../policies/registry/permits.ts'
import type { Viewer } from '../../resources/api/request.ts'

export const whoamiPath = '/api/whoami'

/** Claims and metadata for display, in their order. Others stay on the server. */
const shownClaims = [
  ...['sub', 'id', 'name', 'preferred_username', 'email'],
  ...['user', 'group', 'groups', 'role', 'roles'],
]

const maxTextLength = 200
const maxListLength = 50

const resources = '/api/config/resources'

/** Derives the user of a `ui` gateway from an authenticated request, and their rights from the rules. */
export async function viewerOf({ facts, auth }: Exchange, permits: Permits): Promise<Viewer> {
  const { login, data } = identityOf({ facts, auth })
  const claims = shown(data)
  const { email } = claims
  const probe = (method: string, query: string): Facts => ({
    ...facts,
    request: { ...facts.request, method, path: resources, query },
    ui: { change: true },
  })
  return {
    login,
    name: nameOf(claims),
    email: typeof email === 'string' ? email : undefined,
    claims,
    mayChange: await permits(probe('PUT', '')),
    mayReveal: await permits(probe('GET', '?reveal=true')),
    logoutPath: auth.session?.logoutPath,
    sessionEndsAt: auth.session?.endsAt,
  }
}

type Identity = { login: Viewer['login']; data: Readonly<Record<string, unknown>> }

function identityOf({ facts, auth }: Pick<Exchange, 'facts' | 'auth'>): Identity {
  const { jwt, basicAuth, apiKey } = facts
  if (jwt !== undefined) return { login: auth.session === undefined ? 'jwt' : 'oidc', data: jwt }
  if (basicAuth !== undefined) return { login: 'basic', data: { name: basicAuth.username } }
  return { login: 'apiKey', data: apiKey ?? {} }
}

function nameOf(claims: Viewer['claims']): string | undefined {
  const { name, preferred_username: username, email, sub, id } = claims
  return [name, username, email, sub, id].find((value) => typeof value === 'string')
}

function shown(data: Readonly<Record<string, unknown>>): Viewer['claims'] {
  const claims: Record<string, string | readonly string[]> = {}
  for (const claim of shownClaims) {
    const value = shownValue(Object.hasOwn(data, claim) ? data[claim] : undefined)
    if (value !== undefined) claims[claim] = value
  }
  return claims
}

function shownValue(value: unknown): string | readonly string[] | undefined {
  if (typeof value === 'string') return shorten(value)
  if (!Array.isArray(value)) return undefined
  const texts = value.filter((entry) => typeof entry === 'string')
  return texts.slice(0, maxListLength).map(shorten)
}

function shorten(text: string): string {
  return text.length > maxTextLength ? `${text.slice(0, maxTextLength)}…` : text
}
