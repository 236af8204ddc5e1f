import { randomUUID } from 'node:crypto'
import { editTopLevel } from '../../../lib/json/edit.ts'
import { readJson } from '../../../lib/json/read.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import { closeCodes } from '../../../net/websocket/frame.ts'
import { isOfClient } from '../models/target.ts'
import { readClientEvent, withUpstreamModel } from './client-event.ts'
import { errorEvent, errorOf, eventIdOf, type RealtimeError } from './error-event.ts'
import type { MessageHandler, SessionParts } from './parts.ts'

/**
 * Creates the handler of messages of the client: one interpretation, permitted models, checked texts, and
 * limits for each requested response.
 */
export function createClientMessages(parts: SessionParts): MessageHandler {
  const { connection, client, upstream, watch, responses, checks } = parts
  const { end } = parts.ending
  const { candidate, exchange } = connection
  const { target } = candidate
  const permitsPrompts = target.sharedObjects.has('prompts') || isOfClient(target)
  const requested = exchange.facts.llm?.requestModel ?? candidate.model

  async function fromClient(bytes: Buffer, isText: boolean): Promise<void> {
    watch.touch()
    if (!isText) return end({ code: closeCodes.unsupportedData, reason: 'events must be text messages' })
    const read = readClientEvent(await readJson(bytes, parts.context.workQueue, parts.limits.json))
    if (read.kind === 'error') return report(read.error, undefined)
    const access = parts.calls.current.auth.models
    const event = withUpstreamModel(read, { requested, upstream: candidate.model, access, permitsPrompts })
    if (event.kind === 'error') return report(event.error, read.json)
    if (event.type === 'response.create') return requestResponse(withEventId(event.json), event.json)
    const checked = await checks.request(event.type, event.json)
    if (checked.kind === 'error') return report(checked.error, event.json)
    return upstream.send(checked.json === read.json ? bytes : Buffer.from(checked.json.text))
  }

  async function requestResponse(json: JsonText, received: JsonText): Promise<void> {
    if (parts.ending.isDraining()) return report(shuttingDown, received)
    const ended = await watch.check()
    if (ended !== undefined) return end(ended)
    const refusal = await responses.request(json)
    if (refusal !== undefined) return report(errorOf(refusal), received)
    const checked = await checks.request('response.create', json)
    if (checked.kind === 'event') return upstream.send(Buffer.from(checked.json.text))
    responses.refused({ eventId: eventIdOf(json.value['event_id']) ?? '' })
    return report(checked.error, received)
  }

  function report(error: RealtimeError, json: JsonText | undefined): Promise<void> | undefined {
    return client.send(errorEvent(error, json?.value['event_id']))
  }

  return fromClient
}

const shuttingDown: RealtimeError = {
  type: 'server_error',
  code: 'shutting_down',
  message: 'the gateway shuts down: open another connection',
}

/** The event with an id, by which the provider reports its refusal. */
function withEventId(json: JsonText): JsonText {
  if (eventIdOf(json.value['event_id']) !== undefined) return json
  const id = JSON.stringify(`event_${randomUUID()}`)
  const edited = readJsonObject(editTopLevel(json, { set: new Map([['event_id', id]]) }))
  return edited.kind === 'object' ? edited : json
}
