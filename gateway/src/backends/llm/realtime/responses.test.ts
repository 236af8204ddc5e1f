import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { ConnectionCalls, Exchange } from '../../../pipeline/exchange.ts'
import { readClientEvent, withUpstreamModel } from './client-event.ts'
import { errorOf } from './error-event.ts'
import { createResponses } from './responses.ts'
import { generatedBy, readServerEvent } from './server-event.ts'

const refused: Reply = { status: 429, headers: {}, body: Buffer.from('rate limit exceeded') }

/** Calls that are recorded at their end, as `tokens status complete`. */
function recordedCalls(admits: () => boolean = () => true): { calls: ConnectionCalls; ended: string[] } {
  const ended: string[] = []
  const current = fixtureExchange()
  return {
    ended,
    calls: {
      current,
      isOutdated: false,
      isGuarded: false,
      async start(prepare) {
        const exchange: Exchange = { ...fixtureExchange(), facts: { ...current.facts } }
        prepare(exchange)
        if (!admits() && exchange.llm?.isCommitted !== true)
          return { kind: 'refused', exchange, reply: refused }
        return {
          kind: 'admitted',
          exchange,
          end({ complete }) {
            const usage = exchange.llm?.call?.attempt?.usage
            ended.push(`${usage?.totalTokens ?? 'none'}${usage?.estimated ? ' estimated' : ''} ${complete}`)
          },
        }
      },
      recheck: async () => undefined,
      checkRequest: async () => undefined,
      checkReply: async (_, reply) => reply,
    },
  }
}

function responsesOf({ calls }: { calls: ConnectionCalls }, context = fixtureContext()) {
  const target = {
    configuredModel: 'voice',
    provider: { name: 'openai' },
    authorization: undefined,
    overrides: new Map(),
    defaults: new Map(),
  }
  const connection = {
    exchange: fixtureExchange(),
    candidate: { target, model: 'gpt-realtime' },
    call: { endpoint: 'realtime', pathEndpoint: 'realtime', candidates: [] },
  }
  return createResponses(connection as never, calls, context)
}

function event(value: object) {
  const json = readJsonObject(JSON.stringify(value))
  if (json.kind !== 'object') throw new Error('not an object')
  return json
}

const done = (id: string, usage?: object) => ({ id, status: 'completed', usage }) as never
const usage = { total_tokens: 9, input_tokens: 6, output_tokens: 3 }

describe('the responses of a connection', () => {
  it('are calls that end with their usage', async () => {
    const recorded = recordedCalls()
    const responses = responsesOf(recorded)
    expect(await responses.request(event({ type: 'response.create' }))).toBeUndefined()
    expect(responses.isIdle()).toBe(false)
    expect(await responses.created({ id: 'r1' })).toBeUndefined()
    expect(responses.activeIds()).toEqual(['r1'])
    responses.done(done('r1', usage))
    expect(responses.isIdle()).toBe(true)
    responses.done(done('r1', usage))
    responses.endAll()
    expect(recorded.ended).toEqual(['9 true'])
  })

  it('are admitted at their start if the provider starts them', async () => {
    let isOpen = true
    const recorded = recordedCalls(() => isOpen)
    const responses = responsesOf(recorded)
    expect(await responses.created({ id: 'r1' })).toBeUndefined()
    isOpen = false
    expect(await responses.created({ id: 'r2' })).toBe(refused)
    expect(responses.activeIds()).toEqual(['r1', 'r2'])
    responses.done({ id: 'r2', status: 'cancelled', usage })
    expect(await responses.transcribed({ usage: { type: 'tokens', ...usage } }, 'm')).toBe(refused)
    // Charged although they are refused.
    expect(recorded.ended).toEqual(['9 false', '9 true'])
    expect(errorOf(refused)).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' })
  })

  it('end without usage if the provider refuses them', async () => {
    const recorded = recordedCalls()
    const responses = responsesOf(recorded)
    await responses.request(event({ type: 'response.create', event_id: 'mine' }))
    responses.refused({ eventId: 'other' })
    responses.refused({ eventId: 'mine' })
    expect(recorded.ended).toEqual(['none false'])
  })

  it('end without usage after an error without event, unless they start soon', async () => {
    const recorded = recordedCalls()
    const context = fixtureContext()
    const responses = responsesOf(recorded, context)
    const create = () => responses.request(event({ type: 'response.create', event_id: 'mine' }))
    await create()
    responses.refused({ eventId: undefined })
    context.clock.advance(4_999)
    expect(responses.endLate()).toBe(false)
    await responses.created({ id: 'r1' })
    responses.done(done('r1', usage))
    await create()
    responses.refused({ eventId: undefined })
    context.clock.advance(5_000)
    expect([responses.endLate(), responses.isIdle()]).toEqual([true, true])
    await create()
    await create()
    responses.refused({ eventId: undefined, code: 'conversation_already_has_active_response' })
    expect(recorded.ended).toEqual(['9 true', 'none false', 'none false'])
    expect(responses.isIdle()).toBe(false)
  })

  it('end with an estimate if the provider does not start them within a minute', async () => {
    const recorded = recordedCalls()
    const context = fixtureContext()
    const responses = responsesOf(recorded, context)
    await responses.created({ id: 'r1' })
    responses.done(done('r1', usage))
    await responses.request(event({ type: 'response.create', event_id: 'mine' }))
    context.clock.advance(59_999)
    expect(responses.endLate()).toBe(false)
    context.clock.advance(1)
    expect([responses.endLate(), responses.isIdle()]).toEqual([true, true])
    expect(recorded.ended).toEqual(['9 true', '9 estimated false'])
  })

  it('are estimated by the context and the generated text if they do not report usage', async () => {
    const recorded = recordedCalls()
    const responses = responsesOf(recorded)
    await responses.created({ id: 'r1' })
    responses.done(done('r1', usage))
    await responses.created({ id: 'r2' })
    responses.generated('r2', 40)
    responses.endAll()
    expect(recorded.ended).toEqual(['9 true', '19 estimated false'])
  })

  it('end at once if the connection has ended during their admission', async () => {
    const recorded = recordedCalls()
    const responses = responsesOf(recorded)
    const admission = responses.request(event({ type: 'response.create' }))
    responses.endAll()
    await admission
    await responses.created({ id: 'r1' })
    expect(recorded.ended).toEqual(['none false', 'none false'])
    expect(responses.activeIds()).toEqual([])
  })

  it('are limited in number before the provider has created them', async () => {
    const responses = responsesOf(recordedCalls())
    for (let count = 0; count < 32; count += 1) await responses.request(event({ type: 'response.create' }))
    expect(await responses.request(event({ type: 'response.create' }))).toMatchObject({ status: 429 })
  })

  it('include transcriptions with tokens, not those with seconds', async () => {
    const recorded = recordedCalls()
    const responses = responsesOf(recorded)
    await responses.transcribed({ usage: { type: 'duration', seconds: 3 } }, 'whisper-1')
    await responses.transcribed({ usage: { type: 'tokens', ...usage } }, 'gpt-4o-transcribe')
    expect(recorded.ended).toEqual(['9 true'])
  })
})

describe('events', () => {
  const models = { requested: 'voice', upstream: 'gpt-realtime', access: undefined, permitsPrompts: false }
  const edited = (value: object, permitsPrompts = false) => {
    const read = readClientEvent(event(value))
    return read.kind === 'event' ? withUpstreamModel(read, { ...models, permitsPrompts }) : read
  }

  it.each([
    ['session.update', 'session'],
    ['transcription_session.update', 'session'],
    ['response.create', 'response'],
  ])('of the client name no prompts of the provider: %s', (type, member) => {
    const naming = { type, [member]: { prompt: { id: 'pmpt_1' } } }
    expect(edited(naming)).toMatchObject({
      kind: 'error',
      error: { code: 'object_not_found', param: `${member}.prompt` },
    })
    expect(edited(naming, true).kind).toBe('event')
    expect(edited({ type, [member]: { prompt: null } }).kind).toBe('event')
  })

  it('of the client name the model of the provider', () => {
    const renamed = edited({ type: 'session.update', session: { model: 'voice', instructions: 'x' } })
    expect(renamed.kind === 'event' && renamed.json.value).toEqual({
      type: 'session.update',
      session: { model: 'gpt-realtime', instructions: 'x' },
    })
    expect(edited({ type: 'response.create', response: { model: 'other' } })).toMatchObject({
      kind: 'error',
      error: { code: 'model_not_allowed', param: 'response.model' },
    })
    expect(edited({ type: 'input_audio_buffer.append', session: { model: 'x' } }).kind).toBe('event')
  })

  it.each([
    [
      '{"type":"response.output_audio.delta","response_id":"r1","delta":"AAAA"}',
      'response.output_audio.delta',
    ],
    ['{ "event_id" : "e", "type" : "response.done" }', 'response.done'],
    ['[]', undefined],
    ['{"type":1}', undefined],
  ])('of the provider have a type: %s', (text, type) => {
    expect(readServerEvent(Buffer.from(text))?.type).toBe(type)
  })

  it('of the provider count as text of the response', () => {
    const counted = (value: object) => {
      const bytes = Buffer.from(JSON.stringify(value))
      const read = readServerEvent(bytes)
      return read && generatedBy(read, bytes)
    }
    expect(counted({ type: 'response.output_text.delta', response_id: 'r', delta: 'four' })).toEqual({
      id: 'r',
      bytes: 4,
    })
    const audio = { type: 'response.output_audio.delta', response_id: 'r', delta: 'A'.repeat(64_000) }
    expect(counted(audio)).toEqual({ id: 'r', bytes: 81 })
  })
})
