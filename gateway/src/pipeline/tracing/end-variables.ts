import { isCredentialName } from '../../lib/http-token.ts'
import { isJsonObject } from '../../lib/json/json.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Exchange, Facts, McpCall } from '../exchange.ts'
import type { LlmTexts } from '../facts/llm-facts.ts'
import { hashedValue } from '../recording/credential-values.ts'

/** The facts of a finished request. */
export type EndVariables = Omit<Facts, 'response' | 'mcp'> & {
  readonly response: { readonly headers: Headers }
  readonly mcp: object | undefined
}

/**
 * Variables of expressions that are evaluated at the end of a request: of the access log, spans and metric
 * labels. Created only for expressions.
 */
export function variablesAtEnd({ facts, mcp }: Exchange, { status }: Pick<Delivery, 'status'>): EndVariables {
  return {
    ...facts,
    llmTexts: facts.llmTexts ?? noTexts,
    mcp: mcp?.call === undefined ? undefined : mcpVariable(mcp.call),
    response: facts.response ?? { code: status ?? 499, headers: {} },
  }
}

/**
 * The same for expressions whose values leave the process: the query, and headers that may be credentials or
 * that `sensitive` lists in lower case, are replaced by their hash, as in the ledger.
 */
export function withoutCredentials(variables: EndVariables, sensitive: ReadonlySet<string>): EndVariables {
  const { request, response, source } = variables
  const { connectHeaders } = source
  const { query, headers } = request
  return {
    ...variables,
    request: {
      ...request,
      query: query === '' ? '' : hashedValue(query),
      headers: hashedHeaders(headers, sensitive),
    },
    response: { ...response, headers: hashedHeaders(response.headers, sensitive) },
    source:
      connectHeaders === undefined
        ? source
        : { ...source, connectHeaders: hashedHeaders(connectHeaders, sensitive) },
  }
}

function hashedHeaders(headers: Headers, sensitive: ReadonlySet<string>): Headers {
  const result: Headers = {}
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    const isSecret = isCredentialName(name) || sensitive.has(name)
    result[name] = isSecret ? hashedValue(String(value)) : value
  }
  return result
}

/** Texts of requests that were refused before their prompt was read. */
const noTexts: LlmTexts = { prompt: [], completion: [] }

function mcpVariable({ method, item, target, arguments: given, response }: McpCall): object {
  const kind = kinds.find(({ prefix }) => method.startsWith(prefix))
  const named =
    item === undefined
      ? undefined
      : {
          ...{ name: item, target: target ?? '', arguments: given },
          ...(kind?.variable === 'tool' && response !== undefined ? outcomeOf(response) : {}),
        }
  return {
    method,
    methodName: method,
    ...(kind === undefined || named === undefined ? {} : { [kind.variable]: named }),
  }
}

/** `result` or `error` of a JSON-RPC response; the start of its text if it is cut off. */
function outcomeOf(response: string): { readonly result?: unknown; readonly error?: unknown } {
  const parsed = tryParse(response)
  if (!isJsonObject(parsed)) return { result: response }
  const { result, error } = parsed
  return error === undefined ? { result } : { error }
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const kinds = [
  { prefix: 'tools/', variable: 'tool' },
  { prefix: 'prompts/', variable: 'prompt' },
  { prefix: 'resources/', variable: 'resource' },
] as const
