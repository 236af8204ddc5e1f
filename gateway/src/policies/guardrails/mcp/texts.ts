import type { Clock } from '../../../lib/clock.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { type JsonPath, spliceJson } from '../../../lib/json/splice.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { McpCheck, McpVerdict } from '../../../pipeline/mcp/mcp-check.ts'
import type { Guard, Phase } from '../guard.ts'
import { runGuards } from '../run.ts'
import type { Content } from '../view.ts'

const guardRefusal = -32001
const internalError = -32603
const maxReason = 1_000

/** Limit on the texts of a message; a message with more fails the check. */
const maxTexts = 10_000

/** Methods with texts of models in `arguments`, or of users and models in `inputResponses`. */
const methodsWithInput: ReadonlySet<string> = new Set([
  ...['tools/call', 'prompts/get'],
  // Repeated with input (MCP 2026-07-28, Multi Round-Trip Requests; Tasks).
  ...['resources/read', 'tasks/update'],
])
/** Methods with texts in results and errors. */
const methodsWithTexts: ReadonlySet<string> = new Set([
  ...['tools/call', 'prompts/get', 'resources/read'],
  // The result of a tool call that runs as a task: of MCP 2025-11-25, and of the extension.
  ...['tasks/result', 'tasks/get'],
])

/** Members of protocol objects that are not text for a model. */
const protocolMembers: ReadonlySet<string> = new Set([
  ...['_meta', 'annotations', 'blob', 'data', 'icons', 'mimeType', 'role', 'type'],
])
/** Members with data of a tool, where every string is a text. */
const freeMembers: ReadonlySet<string> = new Set(['arguments', 'structuredContent'])

export type TextGuards = { readonly request: readonly Guard[]; readonly response: readonly Guard[] }

/** Applies guards to the strings of arguments, results and errors. Changes are spliced in. */
export function guardTexts({ request, response }: TextGuards, clock: Clock): McpCheck {
  return {
    name: 'guards of texts',
    isGuard: true,
    onRequest(exchange, { method, params }) {
      if (request.length === 0 || params === undefined || !methodsWithInput.has(method)) return undefined
      return checkTexts(exchange, params, { part: 'params', guards: request, clock })
    },
    checksResult: (method) => response.length > 0 && methodsWithTexts.has(method),
    onResult: (exchange, _request, result) =>
      checkTexts(exchange, result, { part: 'result', guards: response, clock }),
    onError: (exchange, _request, error) =>
      // Servers of JSON-RPC 1.0 add it to results.
      error === 'null' ? undefined : checkTexts(exchange, error, { part: 'error', guards: response, clock }),
  }
}

/** Member of a message that is checked. */
type Part = 'params' | 'result' | 'error'

type TextCheck = { readonly part: Part; readonly guards: readonly Guard[]; readonly clock: Clock }

async function checkTexts(
  exchange: Exchange,
  text: string,
  { part, guards, clock }: TextCheck,
): Promise<McpVerdict | undefined> {
  const found = textsIn(text, part)
  const phase: Phase = part === 'params' ? 'request' : 'response'
  if (found?.length === 0) return undefined
  const texts = found?.map(({ content }): Content => ({ role: 'tool', content, fixed: false }))
  const checked = { phase, texts, unknownType: undefined, exchange, replyHeaders: undefined, clock }
  const outcome = await runGuards(guards, checked)
  if (outcome.kind === 'pass') return undefined
  if (outcome.kind === 'rejected') {
    exchange.log.refusedBy = `guardrail: ${outcome.guard}`
    if (outcome.isFailure === true)
      return { kind: 'refuse', status: 503, code: internalError, message: 'guard of MCP messages failed' }
    const { body, status } = outcome.rejection
    const message = body.slice(0, maxReason) || 'refused by a guard'
    return { kind: 'refuse', status: status < 400 ? 403 : status, code: guardRefusal, message }
  }
  const splices = (found ?? []).flatMap(({ path, content }, index) => {
    const changed = outcome.contents[index]
    return changed === undefined || changed === content
      ? []
      : [{ kind: 'set', path, json: JSON.stringify(changed) } as const]
  })
  return splices.length === 0 ? undefined : { kind: 'replace', text: spliceJson(text, splices) }
}

type FoundText = { readonly path: JsonPath; readonly content: string }

/**
 * The strings of `arguments` and `inputResponses`, of a result for models, or of an error, in order of the
 * text; undefined if the object is not readable or has too many.
 */
export function textsIn(text: string, part: Part): FoundText[] | undefined {
  const json = readJsonObject(text)
  if (json.kind !== 'object') return undefined
  const found: FoundText[] = []
  const isComplete =
    part === 'params'
      ? collect(json.value['arguments'], ['arguments'], true, found) &&
        collectInput(json.value['inputResponses'], found)
      : collect(json.value, [], part === 'error', found)
  return isComplete ? found : undefined
}

/** Responses of the client: forms have names of the server in `content`, others members of the protocol. */
function collectInput(responses: JsonValue | undefined, found: FoundText[]): boolean {
  if (!isJsonObject(responses)) return collect(responses, ['inputResponses'], true, found)
  return Object.entries(responses).every(([name, response]) => {
    const path = ['inputResponses', name]
    const isForm = isJsonObject(response) && typeof response['action'] === 'string'
    return isForm
      ? collect(response['content'], [...path, 'content'], true, found)
      : collect(response, path, false, found)
  })
}

function collect(value: JsonValue | undefined, path: JsonPath, isFree: boolean, found: FoundText[]): boolean {
  if (found.length > maxTexts) return false
  if (typeof value === 'string') {
    if (value !== '') found.push({ path, content: value })
    return true
  }
  if (Array.isArray(value))
    return value.every((item, index) => collect(item, [...path, index], isFree, found))
  return !isJsonObject(value) || collectMembers(value, path, isFree, found)
}

function collectMembers(value: JsonObject, path: JsonPath, isFree: boolean, found: FoundText[]): boolean {
  return Object.entries(value).every(([name, member]) => {
    if (isFree) return collect(member, [...path, name], true, found)
    if (protocolMembers.has(name)) return true
    return collect(member, [...path, name], freeMembers.has(name), found)
  })
}
