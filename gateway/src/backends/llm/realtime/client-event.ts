import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { ReadJson } from '../../../lib/json/read.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import type { ModelAccess } from '../../../pipeline/exchange.ts'
import { findAmbiguousRealtimeName } from '../../../pipeline/llm-names.ts'
import { refusalOf } from '../stored/provider-objects.ts'
import type { RealtimeError } from './error-event.ts'

/** An event of the client that may be forwarded, or the error for it. */
export type ClientEvent =
  | { readonly kind: 'event'; readonly type: string; readonly json: JsonText }
  | { readonly kind: 'error'; readonly error: RealtimeError }

/** Models of a connection: the client's name, the provider's name, and those that the key permits. */
export type ConnectionModels = {
  readonly requested: string
  readonly upstream: string
  readonly access: ModelAccess | undefined
  /** Whether clients may name prompts in the account of the provider. */
  readonly permitsPrompts: boolean
}

/** Checks that a message of the client is an event with one interpretation. */
export function readClientEvent(json: ReadJson): ClientEvent {
  if (json.kind === 'duplicate') return invalid(`duplicate key "${json.path.slice(0, 200)}"`)
  if (json.kind === 'invalid') return invalid(`the event is ${json.message}`)
  const problem = findAmbiguousRealtimeName(json.value)
  if (problem?.kind === 'too many') return invalid('the event has too many unknown keys')
  if (problem !== undefined)
    return invalid(`key "${problem.path}" differs only in case from a field of the API or from another key`)
  const { type } = json.value
  return typeof type === 'string' ? { kind: 'event', type, json } : invalid('type must be a string', 'type')
}

function invalid(message: string, param?: string): ClientEvent {
  return { kind: 'error', error: { type: 'invalid_request_error', code: 'invalid_event', message, param } }
}

/**
 * Checks the models that an event names, and replaces the client's name of the model of the connection by the
 * provider's. Other models are those of transcriptions, which the key must permit.
 */
export function withUpstreamModel(
  { type, json }: { readonly type: string; readonly json: JsonText },
  models: ConnectionModels,
): ClientEvent {
  const member =
    type === 'response.create' ? 'response' : type.endsWith('session.update') ? 'session' : undefined
  if (member === undefined) return { kind: 'event', type, json }
  const settings = json.value[member]
  if (!isJsonObject(settings)) return { kind: 'event', type, json }
  for (const [path, name] of transcriptionModels(settings)) {
    if (name === undefined || name === null) continue
    const isPermitted = typeof name === 'string' && models.access?.allows(name) !== false
    if (!isPermitted) return notAllowed(`${member}.${path}`, 'Model is not allowed for this API key')
  }
  const { model, prompt } = settings
  if (prompt !== undefined && prompt !== null && !models.permitsPrompts)
    return foreignPrompt(`${member}.prompt`)
  if (model === undefined || model === null || model === models.upstream) return { kind: 'event', type, json }
  if (model !== models.requested)
    return notAllowed(
      `${member}.model`,
      `${member}.model must be the model of the connection: open another one`,
    )
  const read = readJsonObject(memberText(json, member) ?? '')
  if (read.kind !== 'object') return invalid(`${member} must be an object`, member)
  const edited = editTopLevel(read, { set: new Map([['model', JSON.stringify(models.upstream)]]) })
  const event = readJsonObject(editTopLevel(json, { set: new Map([[member, edited]]) }))
  return event.kind === 'object'
    ? { kind: 'event', type, json: event }
    : invalid('the event is not valid JSON')
}

function notAllowed(param: string, message: string): ClientEvent {
  return { kind: 'error', error: { type: 'permission_error', code: 'model_not_allowed', message, param } }
}

function foreignPrompt(param: string): ClientEvent {
  const { code, message } = refusalOf(param)
  return { kind: 'error', error: { type: 'invalid_request_error', code, message, param } }
}

/** The models of transcriptions in a session, by path: of the current API and of its beta. */
export function transcriptionModels(session: JsonObject): [path: string, name: JsonValue | undefined][] {
  const audio = member(member(session['audio'], 'input'), 'transcription')
  return [
    ['audio.input.transcription.model', member(audio, 'model')],
    ['input_audio_transcription.model', member(session['input_audio_transcription'], 'model')],
  ]
}

function member(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? value[name] : undefined
}
