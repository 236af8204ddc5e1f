import { exactObject } from '../../../lib/json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../lib/json/json.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { ConnectionCalls, Exchange, StartedCall } from '../../../pipeline/exchange.ts'
import { recordHead } from '../../../pipeline/recording/recording.ts'
import { startRecord } from '../attempt/attempt-record.ts'
import { estimateUsage, usageIn } from '../reply/usage.ts'
import { type Attempt, createAttempt, createCall } from '../request/call.ts'
import { operations } from '../request/endpoints.ts'
import { eventIdOf } from './error-event.ts'
import { createPendingResponses, type ProviderError } from './pending-responses.ts'

/** Calls of a connection: its responses, and the transcriptions that the provider charges. */
export type RealtimeResponses = {
  /** Admits a response that the client requests. Returns the reply of a refusal. */
  request(event: JsonText): Promise<Reply | undefined>
  /**
   * Admits a response that the provider has started by itself; those requested are admitted. A refused one is
   * in progress until its end, and charged.
   */
  created(response: JsonObject): Promise<Reply | undefined>
  /** Counts generated text of a response, for an estimate of its usage. */
  generated(id: string | undefined, bytes: number): void
  /** Ends a response with its usage. */
  done(response: JsonObject): void
  /** Ends a request that the provider has refused. */
  refused(error: ProviderError): void
  /**
   * Ends requests that the provider has not answered in time, with an estimate unless it has reported an
   * error. Returns whether there were any.
   */
  endLate(): boolean
  /** Charges a transcription. Returns the reply of a refusal, which concerns the next one. */
  transcribed(event: JsonObject, model: string | undefined): Promise<Reply | undefined>
  /** The call of a response in progress. */
  exchangeOf(id: string): Exchange | undefined
  /** Ids of responses in progress. */
  activeIds(): string[]
  /** Whether no response is in progress or requested. */
  isIdle(): boolean
  /** Ends all responses, with estimates for those in progress. */
  endAll(): void
}

/** One response. Its attempt has no usage before the provider has created it. */
type Turn = {
  readonly call: Extract<StartedCall, { kind: 'admitted' }>
  readonly attempt: Attempt
  readonly eventId: string | undefined
}

/** Whether a call may be refused: those that the provider has started are charged in any case. */
type CallState = 'requested' | 'committed'

/** Responses that a client may request before the provider has created them. */
const maxPending = 32

/** Creates the calls of a connection that `connection` has opened. */
export function createResponses(
  connection: Attempt,
  calls: ConnectionCalls,
  { clock }: Pick<CompileContext, 'clock'>,
): RealtimeResponses {
  const pending = createPendingResponses<Turn>(clock)
  const active = new Map<string, Turn>()
  /** Tokens of the conversation, as of the last response: the input of the next one. */
  let contextTokens = 0
  /** The connection has ended, maybe during the admission of a response. */
  let isOver = false

  async function start(json: JsonText, state: CallState = 'requested'): Promise<Turn | Reply> {
    let attempt: Attempt | undefined
    const call = await calls.start((exchange) => {
      attempt = describeCall(exchange, connection, json)
      if (exchange.llm && state === 'committed') exchange.llm.isCommitted = true
    })
    if (call.kind === 'refused') return call.reply
    if (attempt === undefined) throw new Error('a call was not described')
    return { call, attempt, eventId: eventIdOf(json.value['event_id']) }
  }

  /** Starts a call that the provider has started already. A refused one is charged, too. */
  async function startOwn(): Promise<{ turn: Turn; refusal: Reply | undefined } | Reply> {
    const json = withoutEvent(connection)
    const turn = await start(json)
    if (!('status' in turn)) return { turn, refusal: undefined }
    const committed = await start(json, 'committed')
    return 'status' in committed ? committed : { turn: committed, refusal: turn }
  }

  function begin(turn: Turn): Turn {
    const { attempt } = turn
    attempt.call.attempt = attempt
    attempt.succeeded = true
    const record = startRecord(attempt.exchange, attempt.candidate, clock)
    if (record) recordHead(record, { status: 200, headers: {} }, clock)
    return turn
  }

  function end({ call, attempt }: Turn, isComplete: boolean): void {
    const { firstByteAt, generatedBytes } = attempt
    call.end({ complete: isComplete, status: 200, bytesSent: generatedBytes, firstByteAt })
  }

  function endRefused(turn: Turn): void {
    turn.attempt.exchange.log.errorCode ??= 'upstream_error'
    end(turn, false)
  }

  function endEstimated(turn: Turn): void {
    const { attempt } = turn
    attempt.usage = estimateUsage(undefined, contextTokens, attempt.generatedBytes)
    attempt.usageFinal = true
    end(turn, false)
  }

  return {
    async request(event) {
      if (pending.count >= maxPending) return tooManyPending
      const turn = await start(event)
      if ('status' in turn) return turn
      if (isOver) end(turn, false)
      else pending.add(turn)
      return undefined
    },
    async created({ id }) {
      const requested = pending.takeFirst()
      const started = requested ? { turn: requested, refusal: undefined } : await startOwn()
      if ('status' in started) return started
      const turn = begin(started.turn)
      if (typeof id === 'string' && !active.has(id) && !isOver) active.set(id, turn)
      else end(turn, false)
      return started.refusal
    },
    generated(id, bytes) {
      const attempt = id === undefined ? undefined : active.get(id)?.attempt
      if (attempt === undefined) return
      attempt.firstByteAt ??= clock.monotonic()
      attempt.generatedBytes += bytes
    },
    done(response) {
      const { id, status } = response
      const turn = typeof id === 'string' ? active.get(id) : undefined
      if (turn === undefined || typeof id !== 'string') return
      active.delete(id)
      const { attempt } = turn
      const usage = usageIn('realtime', { response })
      attempt.usage = usage ?? estimateUsage(undefined, contextTokens, attempt.generatedBytes)
      attempt.usageFinal = true
      contextTokens = attempt.usage.totalTokens
      if (status === 'failed') attempt.exchange.log.errorCode ??= 'upstream_error'
      end(turn, status === 'completed')
    },
    refused(error) {
      const turn = pending.takeRefused(error)
      if (turn !== undefined) endRefused(turn)
    },
    endLate() {
      const late = pending.takeLate()
      for (const { turn, isRefused } of late) {
        if (isRefused) endRefused(turn)
        else endEstimated(begin(turn))
      }
      return late.length > 0
    },
    async transcribed(event, model) {
      const usage = usageIn('realtime', event)
      if (usage === undefined) return undefined
      const started = await startOwn()
      if ('status' in started) return started
      const { attempt } = begin(started.turn)
      attempt.usage = usage
      attempt.usageFinal = true
      attempt.responseModel = model
      end(started.turn, true)
      return started.refusal
    },
    exchangeOf: (id) => active.get(id)?.attempt.exchange,
    activeIds: () => [...active.keys()],
    isIdle: () => pending.count === 0 && active.size === 0,
    endAll() {
      isOver = true
      for (const turn of pending.takeAll()) end(turn, false)
      for (const turn of active.values()) endEstimated(turn)
      active.clear()
    },
  }
}

const tooManyPending: Reply = {
  status: 429,
  headers: {},
  body: Buffer.from(`more than ${maxPending} responses are requested`),
}

/** Describes a call for rules, limits and budgets. */
function describeCall(exchange: Exchange, connection: Attempt, json: JsonText): Attempt {
  const { candidate, call, exchange: opened } = connection
  const { target, model } = candidate
  const { response } = json.value
  const request = { ...(isJsonObject(response) ? response : {}), model }
  const described = readJsonObject(JSON.stringify(request))
  exchange.facts.llmRequest = described.kind === 'object' ? exactObject(described) : { model }
  exchange.facts.llm = {
    ...operations.realtime,
    requestModel: opened.facts.llm?.requestModel ?? model,
    configuredModel: target.configuredModel,
    provider: target.provider.name,
    streaming: true,
    responseModel: undefined,
    cost: undefined,
    costStatus: undefined,
  }
  const own = createCall({
    ...call,
    bytes: Buffer.from(json.text),
    json,
    candidates: [candidate],
    streaming: true,
  })
  exchange.llm = {
    operation: operations.realtime,
    estimate: opened.llm?.estimate,
    message: undefined,
    rulesOfModels: () => (target.authorization === undefined ? [] : [target.authorization]),
    call: own,
  }
  return createAttempt(exchange, own, candidate, { translation: undefined, settings: undefined })
}

/** The request of a call without an event of the client. */
function withoutEvent({ candidate: { model } }: Attempt): JsonText {
  const text = JSON.stringify({ model })
  return { kind: 'object', text, value: { model }, hasLargeNumbers: false }
}
