import type { CelProgram } from '../cel/cel.ts'
import { checkCel, compileCheckedCel } from '../cel/checked.ts'
import { CelEvaluationError } from '../cel/failure.ts'
import { isToken } from '../lib/http-token.ts'
import { firstHeader, type Headers } from '../net/http/headers.ts'
import type { Facts } from '../pipeline/exchange.ts'
import { cel, exactlyOne, type Infer, name, object, optional, string } from '../schema/dsl.ts'
import type { ReportIssue } from '../schema/report.ts'

/** Variables that exist when a credential is looked for. */
const locationRoots: ReadonlySet<string> = new Set(['now', 'request', 'source', 'jwt'])

export const locationSchema = exactlyOne(
  {
    header: object(
      {
        name: name({ doc: 'Name of the header.', example: 'x-team-key' }),
        prefix: optional(
          string({
            doc: 'What comes before the credential, in any case. Without it the header counts as missing.',
            example: 'Bearer ',
          }),
        ),
      },
      { doc: 'The credential is in a header.' },
    ),
    queryParameter: object(
      { name: name({ doc: 'Name of the parameter.', example: 'key' }) },
      { doc: 'The credential is in the query of the address.' },
    ),
    cookie: object({ name: name({ doc: 'Name of the cookie.' }) }, { doc: 'The credential is in a cookie.' }),
    expression: cel(
      {
        doc: 'The credential is the text this expression yields. Headers and query parameters that hold it are not forwarded.',
        example: 'request.headers["x-credentials"].split(":")[1]',
      },
      [...locationRoots],
    ),
  },
  {},
  { doc: 'Where clients put the credential.' },
)

export type LocationConfig = Infer<typeof locationSchema>

/** One place where a credential may be. */
export type CredentialLocation = {
  /** The credential, or undefined when there is none. */
  read(facts: Facts): string | undefined
  /** Takes `credential`, and whatever else is in its place, off the request. */
  remove(facts: Facts, credential: string): void
}

/** Where RFC 6750 section 2.1 puts a token. */
export const bearerLocation: CredentialLocation = headerLocation('authorization', 'Bearer ')

/** Both usual places of a key: OpenAI clients send `authorization: Bearer`, Anthropic ones also `x-api-key`. */
export const defaultLocations: readonly CredentialLocation[] = [
  bearerLocation,
  headerLocation('x-api-key', ''),
]

export function compileLocation(config: LocationConfig): CredentialLocation {
  if (config.header !== undefined)
    return headerLocation(config.header.name.toLowerCase(), config.header.prefix ?? '')
  if (config.queryParameter !== undefined) return queryLocation(config.queryParameter.name)
  if (config.cookie !== undefined) return cookieLocation(config.cookie.name)
  return expressionLocation(config.expression)
}

/** Reports names that no request can hold, and expressions that do not compile. */
export function checkLocation(config: LocationConfig, report: ReportIssue) {
  if (config.header !== undefined && !isToken(config.header.name)) {
    report(['header', 'name'], `not a header name: "${config.header.name}"`)
  }
  if (config.cookie !== undefined && !isToken(config.cookie.name)) {
    report(['cookie', 'name'], `not a cookie name: "${config.cookie.name}"`)
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
      // A copy: V8 turns an object that loses a property into a hash table, and every reader after this pays for it.
      const kept: Headers = {}
      const { headers } = facts.request
      for (const name in headers) {
        const value = headers[name]
        if (name !== header && value !== undefined) kept[name] = value
      }
      // Read-only for everyone but the owner of the credential.
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
    // Where an expression found it is unknown, so everything that holds it goes.
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

/** An expression that fails found no credential. */
function evaluateOrUndefined(program: CelProgram, facts: Facts): unknown {
  try {
    return program.evaluate(facts)
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined
    throw error
  }
}

type QueryPart = { text: string; name: string; value: string }

function queryParts(query: string): QueryPart[] {
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

function filterQuery(facts: Facts, keeps: (part: QueryPart) => boolean) {
  const parts = queryParts(facts.request.query)
  const kept = parts.filter(keeps)
  if (kept.length === parts.length) return
  // Read-only for everyone but the owner of the credential.
  const request: { query: string } = facts.request
  request.query = kept.length === 0 ? '' : `?${kept.map((part) => part.text).join('&')}`
}

/** Form decoding; a malformed escape stays as it is. */
function decoded(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced
  }
}

function cookiePairs(header: string | undefined): string[] {
  if (header === undefined) return []
  return header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
}

function cookieName(pair: string): string {
  const equals = pair.indexOf('=')
  return equals === -1 ? pair : pair.slice(0, equals).trim()
}

function nonEmpty(text: string): string | undefined {
  return text === '' ? undefined : text
}
