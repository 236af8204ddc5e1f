import type { JsonObject, JsonValue } from '../../../../lib/json/json.ts'
import { isJsonObject } from '../../../../lib/json/json.ts'
import { writeJson } from '../exact-json.ts'
import { isAbsent } from '../refusals.ts'
import { createOpenCalls, type OpenCalls } from './calls.ts'
import { objectAt, objectsAt } from './fields.ts'
import { contentOf, type PartOptions, textOf, toChatPart, toInline } from './parts.ts'
import { fromSignature } from './signature.ts'

type TurnOptions = PartOptions & { readonly calls: OpenCalls }

/** Message of the assistant, to which consecutive contents of the model are added. */
type ModelTurn = { text: string; calls: JsonObject[]; thinking: JsonObject[] }

const contentFields: ReadonlySet<string> = new Set(['role', 'parts'])

/** Translates `systemInstruction` and `contents` to the `messages` of a chat request. */
export function toChatMessages(body: JsonObject, options: PartOptions): JsonObject[] {
  const { refusals } = options
  const messages: JsonObject[] = []
  const system = systemText(body.systemInstruction, options)
  if (system !== '') messages.push({ role: 'system', content: system })
  const contents = objectsAt(body.contents, 'contents', refusals)
  if (contents.length === 0) refusals.add('contents', 'must have at least one content')
  const turns: TurnOptions = { ...options, calls: createOpenCalls() }
  let model: ModelTurn | undefined
  for (const [content, path] of contents) {
    refusals.addUnknown(content, contentFields, path)
    const parts = objectsAt(content.parts, `${path}.parts`, refusals)
    if (content.role === 'model') {
      model ??= { text: '', calls: [], thinking: [] }
      addModelParts(model, parts, turns)
      continue
    }
    if (!isAbsent(content.role) && !userRoles.has(content.role))
      refusals.add(`${path}.role`, 'must be user or model')
    pushModelTurn(messages, model)
    model = undefined
    messages.push(...userMessages(parts, turns))
  }
  pushModelTurn(messages, model)
  return messages
}

/** Results of functions had a role of their own in earlier versions of the API. */
const userRoles: ReadonlySet<JsonValue> = new Set(['user', 'function', 'tool', ''])

/** A content, or its text, which SDKs convert. */
function systemText(value: JsonValue | undefined, { refusals }: PartOptions): string {
  if (isAbsent(value)) return ''
  if (typeof value === 'string') return value
  const path = 'systemInstruction'
  const content = objectAt(value, path, refusals)
  refusals.addUnknown(content, contentFields, path)
  return textOf(objectsAt(content.parts, `${path}.parts`, refusals), refusals)
}

const modelFields: ReadonlySet<string> = new Set([
  ...['text', 'functionCall', 'thought', 'thoughtSignature', 'mediaResolution', 'partMetadata'],
])

/** Visible thoughts are omitted: upstreams accept only their own thinking, which is in signatures. */
function addModelParts(turn: ModelTurn, parts: readonly [JsonObject, string][], options: TurnOptions): void {
  const { refusals, dialect } = options
  for (const [part, path] of parts) {
    refusals.addUnknown(part, modelFields, path)
    const { text, thought, functionCall, thoughtSignature: signature } = part
    if (dialect.thinking !== 'effort' && typeof signature === 'string')
      for (const detail of fromSignature(signature)) turn.thinking.push(detail)
    if (!isAbsent(functionCall)) turn.calls.push(toToolCall(functionCall, `${path}.functionCall`, options))
    else if (typeof text === 'string' && thought !== true) turn.text += text
  }
}

const callFields: ReadonlySet<string> = new Set(['id', 'name', 'args'])

function toToolCall(value: JsonValue, path: string, { refusals, calls }: TurnOptions): JsonObject {
  const call = objectAt(value, path, refusals)
  refusals.addUnknown(call, callFields, path)
  const { name, args } = call
  if (typeof name !== 'string') refusals.add(`${path}.name`, 'must be a string')
  if (!isAbsent(args) && !isJsonObject(args)) refusals.add(`${path}.args`, 'must be an object')
  const text = writeJson(args ?? {})
  if (text === undefined) refusals.add(`${path}.args`, 'is nested too deep')
  const known = typeof name === 'string' ? name : ''
  const id = calls.add(known, idOf(call))
  return { id, type: 'function', function: { name: known, arguments: text ?? '{}' } }
}

function idOf({ id }: JsonObject): string | undefined {
  return typeof id === 'string' && id !== '' ? id : undefined
}

/** Turns without content are omitted: upstreams refuse them. */
function pushModelTurn(messages: JsonObject[], turn: ModelTurn | undefined): void {
  if (turn === undefined || (turn.text === '' && turn.calls.length === 0)) return
  messages.push({
    role: 'assistant',
    content: turn.text === '' ? null : turn.text,
    ...(turn.thinking.length > 0 ? { reasoning_details: turn.thinking } : undefined),
    ...(turn.calls.length > 0 ? { tool_calls: turn.calls } : undefined),
  })
}

/** Results of functions become messages in front of the rest of the content, as chat requires. */
function userMessages(parts: readonly [JsonObject, string][], options: TurnOptions): JsonObject[] {
  const messages: JsonObject[] = []
  const rest: JsonObject[] = []
  for (const [part, path] of parts) {
    if (isAbsent(part.functionResponse)) {
      const translated = toChatPart(part, path, options)
      if (translated !== undefined) rest.push(translated)
      continue
    }
    const { message, attachments } = toToolMessage(part.functionResponse, `${path}.functionResponse`, options)
    messages.push(message)
    rest.push(...attachments)
  }
  if (rest.length > 0) messages.push({ role: 'user', content: contentOf(rest) })
  return messages
}

const resultFields: ReadonlySet<string> = new Set([
  ...['id', 'name', 'response', 'parts'],
  // Of functions that do not block, which are refused.
  ...['scheduling', 'willContinue'],
])

/** Media of a result are sent in the message of the user that follows: results of chat are texts. */
function toToolMessage(
  value: JsonValue,
  path: string,
  options: TurnOptions,
): { message: JsonObject; attachments: JsonObject[] } {
  const { refusals, calls } = options
  const result = objectAt(value, path, refusals)
  refusals.addUnknown(result, resultFields, path)
  const { name, response, parts, willContinue } = result
  if (willContinue === true) refusals.add(`${path}.willContinue`, 'must be false: results are sent once')
  const id = calls.answer(typeof name === 'string' ? name : '', idOf(result))
  if (id === undefined)
    refusals.add(path, 'must have the id or the name of an earlier functionCall without a result')
  const attachments = objectsAt(parts, `${path}.parts`, refusals).flatMap(([part, at]): JsonObject[] => {
    const media = isAbsent(part.inlineData)
      ? undefined
      : toInline(part.inlineData, `${at}.inlineData`, options)
    if (media === undefined) refusals.add(`${at}.inlineData`, 'must be data with a type')
    return media === undefined ? [] : [media]
  })
  if (attachments.length > 0)
    attachments.unshift({ type: 'text', text: `Attachments of the result of tool call ${id}:` })
  const content = resultText(response, path, options)
  return { message: { role: 'tool', tool_call_id: id ?? '', content }, attachments }
}

/** `output` is the result of a function by convention; a text without other members is sent as it is. */
function resultText(response: JsonValue | undefined, path: string, { refusals }: TurnOptions): string {
  if (isAbsent(response)) return ''
  if (!isJsonObject(response)) {
    refusals.add(`${path}.response`, 'must be an object')
    return ''
  }
  const { output, ...others } = response
  const isPlain = output !== undefined && Object.keys(others).length === 0
  if (isPlain && typeof output === 'string') return output
  const text = writeJson(isPlain ? output : response)
  if (text === undefined) refusals.add(`${path}.response`, 'is nested too deep')
  return text ?? ''
}
