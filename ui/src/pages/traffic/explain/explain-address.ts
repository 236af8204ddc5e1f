import { gatewaysOf, type RouteValue } from '../traffic-values.ts'

/** The request of the page, in the query of its address. */
export type RequestDraft = {
  readonly gateway: string
  readonly method: string
  readonly host: string
  readonly path: string
  /** One header per line: `name: value`. */
  readonly headers: string
}

export const emptyDraft: RequestDraft = { gateway: '', method: 'GET', host: '', path: '/', headers: '' }

export function readDraft(parameters: URLSearchParams): RequestDraft {
  const text = (name: keyof RequestDraft) => parameters.get(name) ?? emptyDraft[name]
  return {
    gateway: text('gateway'),
    method: text('method'),
    host: text('host'),
    path: text('path'),
    headers: text('headers'),
  }
}

export function writeDraft(draft: RequestDraft): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(draft))
    if (value !== emptyDraft[name as keyof RequestDraft]) parameters.set(name, value)
  return parameters.toString()
}

/** Address of the page with a request that a route should receive. */
export function explainAddress(route: RouteValue): string {
  const [gateway = ''] = gatewaysOf(route)
  const [match = {}] = route.matches ?? []
  const [hostname = 'localhost'] = route.hostnames ?? []
  const path = match.path?.exact ?? match.path?.pathPrefix ?? '/'
  const draft = {
    ...emptyDraft,
    gateway: gateway === 'default' ? '' : gateway,
    method: match.method ?? 'GET',
    host: hostname.replace(/^\*\./, 'www.').replace(/^\*$/, 'localhost'),
    path,
  }
  return `/traffic/explain?${writeDraft(draft)}`
}

export type HeaderLines =
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'mistake'; readonly message: string }

/** Headers of a text with one per line. */
export function readHeaders(text: string): HeaderLines {
  const headers: Record<string, string> = {}
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).trim()
    if (colon < 1 || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
      return { kind: 'mistake', message: `Line ${index + 1} must be a header such as x-team: search` }
    headers[name] = line.slice(colon + 1).trim()
  }
  return { kind: 'headers', headers }
}
