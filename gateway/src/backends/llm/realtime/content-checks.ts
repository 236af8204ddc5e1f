import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { readJson } from '../../../lib/json/read.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import type { WorkQueue } from '../../../lib/scheduling/work-queue.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { ConnectionCalls, Exchange } from '../../../pipeline/exchange.ts'
import type { LlmMessage } from '../../../pipeline/llm-message.ts'
import type { Attempt } from '../request/call.ts'
import { type RealtimeError, rejectionOf } from './error-event.ts'

/** Checks of the texts of events by the guards of the route and the model. */
export type ContentChecks = {
  /** Checks an event of the client. Returns it as changed by the guards, or the error of a rejection. */
  request(type: string, json: JsonText): Promise<CheckedEvent>
  /** Whether responses are withheld until they are checked. */
  checksResponses(): Promise<boolean>
  /** Checks items of a response. Returns the error of a rejection, or of a change: audio has none. */
  output(items: readonly JsonValue[], exchange: Exchange | undefined): Promise<RealtimeError | undefined>
}

export type CheckedEvent =
  | { readonly kind: 'event'; readonly json: JsonText }
  | { readonly kind: 'error'; readonly error: RealtimeError }

/** Events of clients without texts. Audio is not text. */
const withoutText: ReadonlySet<string> = new Set([
  ...['input_audio_buffer.append', 'input_audio_buffer.commit', 'input_audio_buffer.clear'],
  ...['output_audio_buffer.clear', 'response.cancel'],
  ...['conversation.item.delete', 'conversation.item.retrieve', 'conversation.item.truncate'],
])

/** The member with the texts of an event, in the shape of the responses API. */
const textMembers: ReadonlyMap<string, string> = new Map([
  ['session.update', 'session'],
  ['transcription_session.update', 'session'],
  ['response.create', 'response'],
  ['conversation.item.create', 'item'],
])

/** Creates the checks of a connection. The guards see texts as those of the responses API. */
export function createContentChecks(
  connection: Attempt,
  calls: ConnectionCalls,
  workQueue: WorkQueue,
): ContentChecks {
  const { target } = connection.candidate

  function messageOf(json: JsonText | undefined): LlmMessage & { json: JsonText | undefined } {
    const message = {
      api: 'responses' as const,
      json,
      isAnswerOnly: json === undefined,
      request: () => message.json,
      async replaceRequest(bytes: Buffer) {
        const read = await readJson(bytes, workQueue)
        if (read.kind !== 'object') throw new Error('the replacement of an event is not a JSON object')
        message.json = read
      },
      guardrailsOfModels: () => (target.guardrails === undefined ? [] : [target.guardrails]),
      keepsReplaced: false,
      replaced: undefined,
      readsAnswer: false,
      answer: undefined,
    }
    return message
  }

  /** The exchange of a check. Decisions belong to the call, if there is one. */
  function exchangeWith(message: LlmMessage, call?: Exchange): Exchange {
    const { llm } = connection.exchange
    if (llm === undefined) throw new Error('a connection without its call')
    if (call !== undefined) call.guards ??= []
    return { ...(call ?? calls.current), guards: call?.guards, llm: { ...llm, message } }
  }

  /** The body after the guards, or the reply of a rejection. */
  async function checked(body: string): Promise<JsonText | Reply> {
    const json = await readJson(Buffer.from(body), workQueue)
    if (json.kind !== 'object') throw new Error('the texts of an event cannot be read')
    const message = messageOf(json)
    const reply = await calls.checkRequest(exchangeWith(message))
    return reply ?? message.json ?? json
  }

  async function request(type: string, json: JsonText): Promise<CheckedEvent> {
    if (!calls.isGuarded || withoutText.has(type)) return { kind: 'event', json }
    for (const text of separateTexts(json.value)) {
      const body = JSON.stringify({ input: text })
      const result = await checked(body)
      if ('status' in result) return { kind: 'error', error: rejectionOf(result) }
      if (result.text !== body) return { kind: 'error', error: rejectionOf(undefined) }
    }
    const member = textMembers.get(type)
    // Texts of other events are unknown content.
    const given =
      member === undefined ? JSON.stringify({ type: type.slice(0, 100) }) : memberText(json, member)
    if (given === undefined || given === 'null') return { kind: 'event', json }
    const isItem = member === 'item' || member === undefined
    const body = isItem ? `{"input":${given}}` : given
    const result = await checked(body)
    if ('status' in result) return { kind: 'error', error: rejectionOf(result) }
    if (member === undefined || result.text === body) return { kind: 'event', json }
    const changed = isItem ? memberText(result, 'input') : result.text
    const event = readJsonObject(editTopLevel(json, { set: new Map([[member, changed ?? 'null']]) }))
    if (event.kind !== 'object') throw new Error('the changed event is not a JSON object')
    return { kind: 'event', json: event }
  }

  return {
    request,
    async checksResponses() {
      if (!calls.isGuarded) return false
      const message = messageOf(undefined)
      const refused = await calls.checkRequest(exchangeWith(message))
      if (refused !== undefined) throw new Error('the guards of a connection are not available')
      return message.checksStreams === true
    },
    async output(items, exchange) {
      const json = readJsonObject(JSON.stringify({ output: items }))
      if (json.kind !== 'object') throw new Error('the texts of a response cannot be read')
      const message = messageOf(undefined)
      message.readsAnswer = true
      message.answer = { kind: 'whole', json }
      const reply: Reply = { status: 200, headers: {}, body: Buffer.from(json.text) }
      const result = await calls.checkReply(exchangeWith(message, exchange), reply)
      if (result === reply) return undefined
      return rejectionOf(result.status === 200 ? undefined : result)
    },
  }
}

const maxSeparateTexts = 64

/** Texts that readers of messages do not expect: transcripts of sent audio, and prompts of transcriptions. */
function separateTexts(event: JsonObject): string[] {
  const found: string[] = []
  const visit = (value: JsonValue | undefined): void => {
    if (Array.isArray(value)) for (const item of value) visit(item)
    else if (isJsonObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        if (typeof member !== 'string') visit(member)
        else if ((name === 'transcript' || name === 'prompt') && member !== '') found.push(member)
      }
    }
  }
  visit(event)
  if (found.length > maxSeparateTexts) throw new Error('an event with too many texts')
  return found
}
