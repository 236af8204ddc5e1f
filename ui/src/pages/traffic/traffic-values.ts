/** Fields of a gateway that the console displays. */
export type GatewayValue = {
  readonly name?: string
  readonly port?: number | string
  readonly protocol?: string
  readonly tls?: object
  readonly listeners?: readonly {
    readonly name?: string
    readonly hostname?: string
    readonly protocol?: string
    readonly tls?: object
  }[]
}

/** Fields of HTTP and TCP routes that the console displays. */
export type RouteValue = {
  readonly name?: string
  readonly gateways?: string | readonly string[]
  readonly hostnames?: readonly string[]
  readonly matches?: readonly MatchValue[]
  readonly policies?: Readonly<Record<string, unknown>>
  readonly backends?: readonly Readonly<Record<string, unknown>>[]
}

export type MatchValue = {
  readonly path?: { readonly exact?: string; readonly pathPrefix?: string; readonly regex?: string | unknown }
  readonly method?: string
  readonly headers?: readonly { readonly name?: string }[]
  readonly query?: readonly { readonly name?: string }[]
}

/** Names of the gateways of a route; the default one without. */
export function gatewaysOf({ gateways }: RouteValue): readonly string[] {
  if (gateways === undefined) return ['default']
  return typeof gateways === 'string' ? [gateways] : gateways
}

/** A match in words: `GET /v1/*, header x-team`. */
export function matchText({ path, method, headers = [], query = [] }: MatchValue): string {
  const place =
    path?.exact ??
    (path?.pathPrefix !== undefined
      ? `${path.pathPrefix.replace(/\/$/, '')}/*`
      : typeof path?.regex === 'string'
        ? `~ ${path.regex}`
        : '/*')
  const conditions = [
    ...headers.map(({ name = '' }) => `header ${name}`),
    ...query.map(({ name = '' }) => `query ${name}`),
  ]
  return [[method, place].filter(Boolean).join(' '), ...conditions].join(', ')
}

/** Destinations of a route in words. */
export function backendTexts({ backends = [], policies = {} }: RouteValue): readonly string[] {
  if (backends.length > 0) return backends.map(backendText)
  if (policies['directResponse'] !== undefined) return ['direct response']
  if (policies['requestRedirect'] !== undefined) return ['redirect']
  return []
}

const kinds: Readonly<Record<string, string>> = {
  ai: 'LLM provider',
  mcp: 'MCP servers',
  dynamic: 'host of the request',
}

function backendText(entry: Readonly<Record<string, unknown>>): string {
  const { weight, policies: _, ...target } = entry
  const [kind = '', value] = Object.entries(target).find(([, member]) => member !== undefined) ?? []
  const text = typeof value === 'string' ? value : (kinds[kind] ?? kind)
  return weight === undefined || weight === 1 ? text : `${text} · weight ${String(weight)}`
}
