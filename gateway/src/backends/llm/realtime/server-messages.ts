import { randomUUID } from 'node:crypto'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { closeCodes } from '../../../net/websocket/frame.ts'
import { transcriptionModels } from './client-event.ts'
import { errorEvent, errorOf, eventIdOf, type RealtimeError } from './error-event.ts'
import { createHeldResponses } from './held-responses.ts'
import type { MessageHandler, SessionParts } from './parts.ts'
import { generatedBy, objectIn, readServerEvent, type ServerEvent } from './server-event.ts'

/** Creates the handler of messages of the provider: they are counted, and checked before forwarding. */
export function createServerMessages(parts: SessionParts): MessageHandler {
  const { client, watch, ending, responses, checks } = parts
  const { end } = ending
  const forwardChecked = createCheckedForwarding(parts)
  let transcriptionModel: string | undefined
  let isChecking: boolean | undefined

  async function fromUpstream(bytes: Buffer, isText: boolean): Promise<void> {
    watch.touch()
    if (!isText) return end({ code: closeCodes.badGateway, reason: 'the provider sent a binary message' })
    const event = readServerEvent(bytes)
    isChecking ??= await checks.checksResponses()
    if (event === undefined && !isChecking) return client.send(bytes)
    if (event === undefined) return end({ code: closeCodes.badGateway, reason: 'the provider sent no event' })
    // The guards of a connection may change with the configuration, between its responses.
    if (event.type === 'response.created' && responses.activeIds().length === 0)
      isChecking = await checks.checksResponses()
    const refusal = isChecking ? await followChecked(event, bytes) : await followUnchecked(event, bytes)
    if (refusal !== undefined) {
      await client.send(errorEvent(refusal, undefined))
      return end({ code: closeCodes.policyViolation, reason: refusal.message })
    }
    if (event.type === 'response.done') ending.responseEnded()
  }

  async function followUnchecked(event: ServerEvent, bytes: Buffer): Promise<RealtimeError | undefined> {
    const refusal = await follow(event, bytes)
    if (refusal === undefined) await client.send(bytes)
    return refusal
  }

  /** The check of a response belongs to its call, which ends with its usage. */
  async function followChecked(event: ServerEvent, bytes: Buffer): Promise<RealtimeError | undefined> {
    const isEnd = event.type === 'response.done'
    const refusal = isEnd ? undefined : await follow(event, bytes)
    const rejection = refusal ?? (await forwardChecked(event, bytes))
    if (isEnd) await follow(event, bytes)
    return rejection
  }

  /** Follows the responses of the provider. Returns the error of one that is not admitted. */
  async function follow(read: ServerEvent, bytes: Buffer): Promise<RealtimeError | undefined> {
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
        if (refusal === undefined) ending.responseStarted(response['id'])
        // The end of the connection cancels the response.
        return refusal && errorOf(refusal)
      }
      case 'response.done':
        responses.done(objectIn(read.event(), 'response'))
        return undefined
      case 'error': {
        const { event_id: eventId, code } = objectIn(read.event(), 'error')
        responses.refused({ eventId: eventIdOf(eventId), code })
        ending.responseEnded()
        return undefined
      }
      case 'session.created':
      case 'session.updated': {
        const models = transcriptionModels(objectIn(read.event(), 'session'))
        transcriptionModel = models.map(([, name]) => name).find((name) => typeof name === 'string')
        return undefined
      }
      case 'conversation.item.input_audio_transcription.completed': {
        const refusal = await responses.transcribed(read.event() ?? {}, transcriptionModel)
        return refusal && errorOf(refusal)
      }
      default:
        return undefined
    }
  }

  return fromUpstream
}

/** Events that have no text of the model. */
const passing = /^(?:input_audio_buffer\.|session\.|rate_limits\.|error$)/

/**
 * Creates the forwarding of events whose responses are withheld until their guards have checked them. Returns
 * the error that ends the connection.
 */
function createCheckedForwarding({ client, responses, checks, limits }: SessionParts) {
  const held = createHeldResponses(limits.maxBytes)

  async function endResponse(response: JsonObject): Promise<void> {
    const id = typeof response['id'] === 'string' ? response['id'] : ''
    const rejection = await checks.output(held.itemsOf(response), responses.exchangeOf(id))
    for (const bytes of held.finish(id, rejection !== undefined)) await client.send(bytes)
    if (rejection === undefined) return
    await client.send(errorEvent(rejection, undefined))
    await client.send(rejectedDone(response, rejection))
  }

  return async (read: ServerEvent, bytes: Buffer): Promise<RealtimeError | undefined> => {
    const event = read.event()
    if (event === undefined) return unreadable
    const { type } = read
    const response = objectIn(event, 'response')
    if (type === 'response.created' && typeof response['id'] === 'string') {
      held.start(response['id'])
      if (!hasOutput(response)) {
        await client.send(bytes)
        return undefined
      }
    }
    if (passing.test(type)) {
      await client.send(bytes)
      return undefined
    }
    if (held.isHolding) {
      if (!held.add(event, bytes)) return tooLarge
      if (type === 'response.done') await endResponse(response)
      return undefined
    }
    // Events behind the end of a rejected response have its texts.
    if (type.startsWith('response.')) return undefined
    const { item } = event
    const isOfModel = isJsonObject(item) && item['role'] !== 'user' && item['role'] !== 'system'
    const rejection = isOfModel ? await checks.output([item], undefined) : undefined
    await client.send(rejection === undefined ? bytes : errorEvent(rejection, undefined))
    return undefined
  }
}

function hasOutput({ output }: JsonObject): boolean {
  return Array.isArray(output) && output.length > 0
}

/** The end of a rejected response: without its output, with its usage. */
function rejectedDone(response: JsonObject, { code }: RealtimeError): Buffer {
  const { id, object = 'realtime.response', usage } = response
  const status = { status: 'failed', status_details: { type: 'failed', error: { type: 'guardrail', code } } }
  const ended = { id, object, ...status, output: [], usage }
  return Buffer.from(
    JSON.stringify({ type: 'response.done', event_id: `event_${randomUUID()}`, response: ended }),
  )
}

const unreadable: RealtimeError = {
  type: 'server_error',
  code: 'guardrail_intervention',
  message: 'an event of the provider cannot be checked',
}

const tooLarge: RealtimeError = {
  type: 'server_error',
  code: 'guardrail_intervention',
  message: 'the response is too large to be checked',
}
