import type { CelProgram } from '../../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../../cel/checked.ts'
import { CelEvaluationError } from '../../cel/failure.ts'
import { isToken } from '../../lib/http-token.ts'
import { firstHeader, type Headers } from '../../net/http/headers.ts'
import type { Facts, RequestFacts } from '../../pipeline/exchange.ts'
import { cel, exactlyOne, type Infer, name, object, optional, string } from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'

/** Variables of the expression of a credential location. */
export const locationRoots: ReadonlySet<string> = new Set(['now', 'request', 'source', 'jwt'])

/** Locations in requests that are not expressions. */
export const partLocations = {
  header: object(
    {
      name: name({ doc: 'Name of the header.', example: 'x-team-key' }),
      prefix: optional(
        string({
          doc: 'Prefix of the credential, case-insensitive. A header without the prefix counts as missing.',
          example: 'Bearer ',
        }),
      ),
    },
    { doc: 'Credential in a header.' },
  ),
  queryParameter: object(
    { name: name({ doc: 'Name of the parameter.', example: 'key' }) },
    { doc: 'Credential in a query parameter.' },
  ),
  cookie: object({ name: name({ doc: 'Name of the cookie.' }) }, { doc: 'Credential in a cookie.' }),
}

export const locationSchema = exactlyOne(
  {
    ...partLocations,
    expression: cel(
      {
        doc: 'Expression that returns the credential as text. Headers and query parameters that contain it are not forwarded.',
        example: 'request.headers["x-credentials"].split(":")[1]',
        reveals: true,
      },
      [...locationRoots],
    ),
  },
  {},
  { doc: 'Location of the credential in requests.' },
)

export type LocationConfig = Infer<typeof locationSchema>

/** The parts of a request with credentials. The query is empty or starts with a question mark. */
export type CredentialParts = Pick<RequestFacts, 'headers' | 'query'>

/** Location of a credential in requests. */
export type CredentialLocation = {
  /** Returns the credential; undefined if absent. */
  read(facts: Facts): string | undefined
  /** Removes `credential`, with the header, parameter or cookie that contains it, from the request. */
  remove(facts: { readonly request: CredentialParts }, credential: string): void
}

/** Location of bearer tokens (RFC 6750 section 2.1). */
export const bearerLocation: CredentialLocation = headerLocation('authorization', 'Bearer ')

/** Location of user name and password (RFC 7617 section 2). */
export const basicLocation: CredentialLocation = headerLocation('authorization', 'Basic ')

const geminiPath =
  /:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$|\/v1(?:(?:alpha|beta)\d?)?\/models(?:\/[^/]+)?$/
const azurePath = /\/openai\/(?:deployments|v1)\//

/**
 * Default locations of API keys: OpenAI clients send `authorization: Bearer`, Anthropic clients also
 * `x-api-key`, Azure's clients `api-key`, and Gemini clients `x-goog-api-key` or the query parameter `key`.
 */
export const defaultLocations: readonly CredentialLocation[] = [
  bearerLocation,
  headerLocation('x-api-key', ''),
  onPaths(geminiPath, headerLocation('x-goog-api-key', '')),
  onPaths(geminiPath, queryLocation('key')),
  onPaths(azurePath, headerLocation('api-key', '')),
]

/** A key on other paths may be that of another service. */
function onPaths(path: RegExp, { read, remove }: CredentialLocation): CredentialLocation {
  return { read: (facts) => (path.test(facts.request.path) ? read(facts) : undefined), remove }
}

export function compileLocation(config: LocationConfig): CredentialLocation {
  if (config.header !== undefined)
    return headerLocation(config.header.name.toLowerCase(), config.header.prefix ?? '')
  if (config.queryParameter !== undefined) return queryLocation(config.queryParameter.name)
  if (config.cookie !== undefined) return cookieLocation(config.cookie.name)
  return expressionLocation(config.expression)
}

/** Reports invalid names of headers and cookies, and expressions that do not compile. */
export function checkLocation(config: LocationConfig, report: ReportIssue) {
  if (config.header !== undefined && !isToken(config.header.name)) {
    report(['header', 'name'], `must be a header name, got "${config.header.name}"`)
  }
  if (config.cookie !== undefined && !isToken(config.cookie.name)) {
    report(['cookie', 'name'], `must be a cookie name, got "${config.cookie.name}"`)
  }
  if (config.expression === undefined) return
  checkCel(config.expression, locationRoots, (message) => report(['expression'], message))
}

function headerLocation(header: string, prefix: string): CredentialLocation {
  const lowerPrefix = prefix.toLowerCase()
  return {
    read({ request }) {
      const value = firstHeader(request.headers, header)
      if (value === undefined) return undefined
      const head = value.slice(0, prefix.length)
      if (head !== prefix && head.toLowerCase() !== lowerPrefix) return undefined
      return nonEmpty(value.slice(prefix.length).trim())
    },
    remove(facts) {
      // A copy: deleting a property makes V8 convert the object to a hash table, which slows every later
      // access.
      const kept: Headers = {}
      const { headers } = facts.request
      for (const name in headers) {
        const value = headers[name]
        if (name !== header && value !== undefined) kept[name] = value
      }
      // Read-only in general; removing the credential is the exception.
      const request: { headers: Headers } = facts.request
      request.headers = kept
    },
  }
}

function queryLocation(parameter: string): CredentialLocation {
  return {
    read({ request }) {
      const found = queryParts(request.query).find((part) => decoded(part.name) === parameter)
      return found && nonEmpty(decoded(found.value))
    },
    remove(facts) {
      filterQuery(facts, (part) => decoded(part.name) !== parameter)
    },
  }
}

function cookieLocation(cookie: string): CredentialLocation {
  return {
    read({ request }) {
      const pairs = cookiePairs(firstHeader(request.headers, 'cookie'))
      const found = pairs.find((pair) => cookieName(pair) === cookie)
      if (found === undefined) return undefined
      const value = found.slice(found.indexOf('=') + 1).trim()
      return nonEmpty(
        value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value,
      )
    },
    remove({ request }) {
      const { headers } = request
      const rest = cookiePairs(firstHeader(headers, 'cookie')).filter((pair) => cookieName(pair) !== cookie)
      if (rest.length === 0) delete headers['cookie']
      else headers['cookie'] = rest.join('; ')
    },
  }
}

function expressionLocation(source: string): CredentialLocation {
  const program = compileCheckedCel(source, locationRoots)
  return {
    read(facts) {
      const value = evaluateOrUndefined(program, facts)
      return typeof value === 'string' ? nonEmpty(value) : undefined
    },
    // The origin of the text is unknown, so all headers and parameters that contain it are removed.
    remove(facts, credential) {
      const { headers } = facts.request
      for (const header in headers) {
        const value = headers[header]
        const values = typeof value === 'string' ? [value] : (value ?? [])
        if (values.some((text) => text.includes(credential))) delete headers[header]
      }
      filterQuery(facts, (part) => !decoded(part.value).includes(credential))
    },
  }
}

/** Evaluates an expression; a failure counts as an absent credential. */
function evaluateOrUndefined(program: CelProgram, facts: Facts): unknown {
  try {
    return program.evaluate(facts)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}

/** A parameter of a query, as sent. */
type QueryPart = { text: string; name: string; value: string }

/** The parameters of a query, which is empty or starts with a question mark. */
export function queryParts(query: string): QueryPart[] {
  if (query.length < 2) return []
  return query
    .slice(1)
    .split('&')
    .map((text) => {
      const equals = text.indexOf('=')
      if (equals === -1) return { text, name: text, value: '' }
      return { text, name: text.slice(0, equals), value: text.slice(equals + 1) }
    })
}

function filterQuery(facts: { readonly request: CredentialParts }, keeps: (part: QueryPart) => boolean) {
  const parts = queryParts(facts.request.query)
  const kept = parts.filter(keeps)
  if (kept.length === parts.length) return
  // Read-only in general; removing the credential is the exception.
  const request: { query: string } = facts.request
  request.query = kept.length === 0 ? '' : `?${kept.map((part) => part.text).join('&')}`
}

/** Form decoding; malformed escapes are not decoded. */
export function decoded(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}

/** The `name=value` pairs of a `cookie` header. */
export function cookiePairs(header: string | undefined): string[] {
  if (header === undefined) return []
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
}

/** Name of a pair of a `cookie` header. */
export function cookieName(pair: string): string {
  const equals = pair.indexOf('=')
  return equals === -1 ? pair : pair.slice(0, equals).trim()
}

function nonEmpty(text: string): string | undefined {
  return text === '' ? undefined : text
}
