import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'
import { parseNestedObject } from '../exact-json.ts'
import { isAbsent, type Refusals } from '../refusals.ts'
import { textOf, textParts, toParts } from './parts.ts'
import { skippedSignature, splitCallId } from './tool-call-id.ts'

/** A conversation of Gemini: the system prompt is separate from the contents. */
export type Conversation = { system: JsonObject[]; contents: JsonObject[] }

type Content = { role: 'user' | 'model'; parts: JsonObject[]; kind: 'turn' | 'results' }

/** Name and position of a call, by which its result is named and ordered. */
type KnownCall = { readonly name: string; readonly position: number }

type OrderedResult = { readonly part: JsonObject; readonly position: number }

export type ConversationOptions = {
  /** Calls without a signature have the one of foreign histories, as Gemini 3 requires. */
  requiresSignatures: boolean
  refusals: Refusals
}

/**
 * Translates the `messages` of a chat request. All system and developer messages at any position become the
 * system instruction. Consecutive messages of a role become one content; results of tools are a separate
 * content in the order of their calls, because Gemini finds the call by position and name.
 */
export function toContents(value: JsonValue | undefined, options: ConversationOptions): Conversation {
  const { refusals } = options
  const system: JsonObject[] = []
  const contents: Content[] = []
  if (!Array.isArray(value)) {
    refusals.add('messages', 'must be a list')
    return { system, contents: [] }
  }
  const calls = new Map<string, KnownCall>()
  let results: OrderedResult[] = []
  const closeResults = () => {
    if (results.length === 0) return
    const ordered = results.sort((one, other) => one.position - other.position)
    contents.push({ role: 'user', parts: ordered.map(({ part }) => part), kind: 'results' })
    results = []
  }
  for (const [index, message] of value.entries()) {
    const path = `messages[${index}]`
    if (!isJsonObject(message)) {
      refusals.add(path, 'must be an object')
      continue
    }
    if (message.role === 'tool') {
      results.push(toResult(message, path, { calls, refusals }))
      continue
    }
    if (message.role === 'system' || message.role === 'developer') {
      refusals.addUnknown(message, plainFields, path)
      system.push(...textParts(message.content, `${path}.content`, refusals))
      continue
    }
    closeResults()
    addTurn(contents, toTurn(message, path, { ...options, calls }))
  }
  closeResults()
  // A request without contents is refused, and chat accepts a system prompt alone.
  if (contents.length === 0) contents.push({ role: 'user', parts: [{ text: ' ' }], kind: 'turn' })
  return { system, contents: contents.map(({ role, parts }) => ({ role, parts })) }
}

/** Contents of a role alternate, and have at least one part. */
function addTurn(contents: Content[], turn: Content): void {
  const last = contents.at(-1)
  if (turn.parts.length === 0) return
  if (last?.role === turn.role && last.kind === 'turn') last.parts.push(...turn.parts)
  else contents.push(turn)
}

/** `name` has no counterpart and is removed: Gemini has two roles without names. */
const plainFields: ReadonlySet<string> = new Set(['role', 'content', 'name'])

type TurnOptions = ConversationOptions & { calls: Map<string, KnownCall> }

function toTurn(message: JsonObject, path: string, options: TurnOptions): Content {
  const { refusals } = options
  if (message.role === 'assistant')
    return { role: 'model', parts: toModelParts(message, path, options), kind: 'turn' }
  if (message.role !== 'user')
    refusals.add(`${path}.role`, 'must be system, developer, user, assistant or tool')
  refusals.addUnknown(message, plainFields, path)
  return { role: 'user', parts: toParts(message.content, `${path}.content`, refusals), kind: 'turn' }
}

const assistantFields: ReadonlySet<string> = new Set([
  ...['role', 'content', 'name', 'refusal', 'tool_calls'],
  // Response fields that clients send back: contained in the text, or unusable without a signature.
  ...['annotations', 'reasoning_content', 'reasoning', 'reasoning_details', 'images', 'audio'],
])

function toModelParts(message: JsonObject, path: string, options: TurnOptions): JsonObject[] {
  const { refusals } = options
  refusals.addUnknown(message, assistantFields, path)
  const parts = isAbsent(message.content) ? [] : textParts(message.content, `${path}.content`, refusals)
  if (typeof message.refusal === 'string' && message.refusal !== '') parts.push({ text: message.refusal })
  const calls = isAbsent(message.tool_calls) ? [] : message.tool_calls
  if (!Array.isArray(calls)) {
    refusals.add(`${path}.tool_calls`, 'must be a list')
    return parts
  }
  for (const [position, call] of calls.entries())
    parts.push(toFunctionCall(call, `${path}.tool_calls[${position}]`, { ...options, position }))
  return parts
}

type CallOptions = TurnOptions & { position: number }

function toFunctionCall(call: JsonValue, path: string, options: CallOptions): JsonObject {
  const { refusals, calls, position, requiresSignatures } = options
  if (!isJsonObject(call)) {
    refusals.add(path, 'must be an object')
    return {}
  }
  if (call.type !== 'function' || !isJsonObject(call.function)) {
    refusals.add(`${path}.type`, 'only calls of functions can be translated for Gemini')
    return {}
  }
  const { name, arguments: text } = call.function
  if (typeof name !== 'string') refusals.add(`${path}.function.name`, 'must be a string')
  if (typeof call.id !== 'string') refusals.add(`${path}.id`, 'must be a string')
  const { id, signature } = splitCallId(typeof call.id === 'string' ? call.id : '')
  calls.set(id, { name: typeof name === 'string' ? name : '', position })
  // Models often omit the arguments of functions without parameters.
  const args = text === '' ? {} : typeof text === 'string' ? parseNestedObject(text) : undefined
  if (args === undefined) refusals.add(`${path}.function.arguments`, 'must be a JSON object in a string')
  // Parallel calls have one signature, on the first of them.
  const missing = requiresSignatures && position === 0 ? skippedSignature : undefined
  const thoughtSignature = signature ?? signatureIn(call) ?? missing
  return {
    functionCall: { name: name ?? '', args: args ?? {} },
    ...(thoughtSignature === undefined ? undefined : { thoughtSignature }),
  }
}

/** The field of Google's own API for chat completions. */
function signatureIn({ extra_content: extra }: JsonObject): string | undefined {
  const google = isJsonObject(extra) ? extra.google : undefined
  const signature = isJsonObject(google) ? google.thought_signature : undefined
  return typeof signature === 'string' ? signature : undefined
}

const toolFields: ReadonlySet<string> = new Set(['role', 'content', 'tool_call_id', 'name'])

type ResultOptions = { calls: ReadonlyMap<string, KnownCall>; refusals: Refusals }

function toResult(message: JsonObject, path: string, { calls, refusals }: ResultOptions): OrderedResult {
  refusals.addUnknown(message, toolFields, path)
  const { tool_call_id: id, content } = message
  const known = typeof id === 'string' ? calls.get(splitCallId(id).id) : undefined
  const name = known?.name ?? message.name
  if (typeof name !== 'string') refusals.add(`${path}.tool_call_id`, 'must be the id of an earlier tool call')
  const text = textOf(content, `${path}.content`, refusals)
  return {
    part: { functionResponse: { name: name ?? '', response: { output: parseNestedObject(text) ?? text } } },
    position: known?.position ?? Number.MAX_SAFE_INTEGER,
  }
}
