import { randomUUID } from 'node:crypto'
import { editTopLevel } from '../../../lib/json/edit.ts'
import type { JsonLimits } from '../../../lib/json/limits.ts'
import { readJson } from '../../../lib/json/read.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import { closeCodes } from '../../../net/websocket/frame.ts'
import type { WebSocketPeer } from '../../../net/websocket/peer.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ConnectionCalls } from '../../../pipeline/exchange.ts'
import type { Attempt } from '../request/call.ts'
import { readClientEvent, transcriptionModels, withUpstreamModel } from './client-event.ts'
import type { Ending } from './ending.ts'
import { errorEvent, errorOf, eventIdOf, type RealtimeError } from './error-event.ts'
import type { RealtimeResponses } from './responses.ts'
import { cancelEvent, generatedBy, objectIn, readServerEvent, type ServerEvent } from './server-event.ts'
import type { SessionWatch } from './session-watch.ts'

/** Parts of a connection. */
export type SessionParts = {
  readonly connection: Attempt
  readonly calls: ConnectionCalls
  readonly client: WebSocketPeer
  readonly upstream: WebSocketPeer
  readonly responses: RealtimeResponses
  readonly watch: SessionWatch
  readonly context: Pick<CompileContext, 'workQueue'>
  readonly jsonLimits: JsonLimits
  readonly ending: Ending
}

/** Handlers of the messages of both sides. */
export type Session = {
  fromClient(bytes: Buffer, isText: boolean): Promise<void>
  fromUpstream(bytes: Buffer, isText: boolean): Promise<void>
}

/** Creates the handlers of a connection. Errors end it. */
export function createSession(parts: SessionParts): Session {
  const { client, upstream, watch, ending } = parts
  const { end } = ending
  let transcriptionModel: string | undefined

  async function fromClient(bytes: Buffer, isText: boolean): Promise<void> {
    watch.touch()
    if (!isText) return end({ code: closeCodes.unsupportedData, reason: 'events must be text messages' })
    const reading = readJson(bytes, parts.context.workQueue, parts.jsonLimits)
    const read = readClientEvent(reading instanceof Promise ? await reading : reading)
    if (read.kind === 'error') return report(read.error, undefined)
    const { candidate, exchange } = parts.connection
    const event = withUpstreamModel(read, {
      requested: exchange.facts.llm?.requestModel ?? candidate.model,
      upstream: candidate.model,
      access: parts.calls.current.auth.models,
    })
    if (event.kind === 'error') return report(event.error, read.json)
    const { type, json } = event
    if (type !== 'response.create') return upstream.send(json === read.json ? bytes : bytesOf(json))
    return requestResponse(withEventId(json))
  }

  async function requestResponse(json: JsonText): Promise<void> {
    if (ending.isDraining()) return report(shuttingDown, json)
    const ended = await watch.check()
    if (ended !== undefined) return end(ended)
    const refusal = await parts.responses.request(json)
    if (refusal !== undefined) return report(errorOf(refusal), json)
    return upstream.send(bytesOf(json))
  }

  function report(error: RealtimeError, json: JsonText | undefined): Promise<void> | undefined {
    return client.send(errorEvent(error, json?.value['event_id']))
  }

  async function fromUpstream(bytes: Buffer, isText: boolean): Promise<void> {
    watch.touch()
    if (!isText) return end({ code: closeCodes.badGateway, reason: 'the provider sent a binary message' })
    const event = readServerEvent(bytes)
    if (event === undefined) return client.send(bytes)
    const refusal = await follow(event, bytes)
    if (refusal === undefined) {
      await client.send(bytes)
      if (event.type === 'response.done') ending.responseEnded()
      return
    }
    await report(refusal, undefined)
    return end({ code: closeCodes.policyViolation, reason: refusal.message })
  }

  /** Follows the responses of the provider. Returns the error of one that is not admitted. */
  async function follow(read: ServerEvent, bytes: Buffer): Promise<RealtimeError | undefined> {
    const { responses } = parts
    const { type } = read
    if (type.endsWith('.delta')) {
      const { id, bytes: generated } = generatedBy(read, bytes)
      responses.generated(id, generated)
      return undefined
    }
    switch (type) {
      case 'response.created': {
        const response = objectIn(read.event(), 'response')
        const refusal = await responses.created(response)
        if (refusal === undefined) return undefined
        await upstream.send(cancelEvent(response['id']))
        return errorOf(refusal)
      }
      case 'response.done':
        responses.done(objectIn(read.event(), 'response'))
        return undefined
      case 'error': {
        const eventId = eventIdOf(objectIn(read.event(), 'error')['event_id'])
        if (eventId !== undefined) responses.refused(eventId)
        return undefined
      }
      case 'session.created':
      case 'session.updated': {
        const models = transcriptionModels(objectIn(read.event(), 'session'))
        transcriptionModel = models.map(([, name]) => name).find((name) => typeof name === 'string')
        return undefined
      }
      case 'conversation.item.input_audio_transcription.completed':
        await responses.transcribed(read.event() ?? {}, transcriptionModel)
        return undefined
      default:
        return undefined
    }
  }

  const guarded =
    (handle: (bytes: Buffer, isText: boolean) => Promise<void>) => async (bytes: Buffer, isText: boolean) => {
      try {
        await handle(bytes, isText)
      } catch (error) {
        parts.connection.exchange.log.failure ??= error
        end({ code: closeCodes.policyViolation, reason: 'a check of the gateway failed' })
      }
    }
  return { fromClient: guarded(fromClient), fromUpstream: guarded(fromUpstream) }
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

function bytesOf({ text }: JsonText): Buffer {
  return Buffer.from(text)
}
