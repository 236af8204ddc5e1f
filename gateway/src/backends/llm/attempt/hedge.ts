import { type CancellationSource, createCancellation } from '../../../lib/cancellation.ts'
import { discard } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { recordFailure } from '../../../pipeline/recording/recording.ts'
import { type Call, makeLatest } from '../request/call.ts'
import {
  type AttemptOptions,
  describeAttempt,
  finishCandidate,
  lostRace,
  type Outcome,
  openCandidate,
  type Race,
  type Turn,
} from './attempt.ts'

export type HedgeOptions = AttemptOptions & {
  readonly delayMs: number
  /** The second candidate, after the delay; undefined without any. */
  takeNext(): Turn | undefined
}

type Racer = {
  readonly race: Race & { readonly cancellation: CancellationSource }
  readonly result: ReturnType<typeof openCandidate>
  hasFailed: boolean
}

/**
 * Sends a streamed call to one candidate and, without its first content after a delay, to a second one. The
 * first content wins; the other request is cancelled, and its usage is estimated. If one of them fails, the
 * other decides.
 */
export async function attemptHedged(
  exchange: Exchange,
  call: Call,
  turn: Turn,
  options: HedgeOptions,
): Promise<Outcome> {
  const first = startRacer(exchange, call, turn, options)
  const isEarly = await settlesWithin(first.result, options.delayMs)
  const next = isEarly ? undefined : options.takeNext()
  if (next === undefined) return finish(first, options)
  const second = startRacer(exchange, call, next, options)
  const winner = await winnerOf(first, second)
  const loser = winner === first ? second : first
  next.candidate.target.meter.hedged(winner === second ? 'won' : 'lost')
  abandon(loser, options)
  const outcome = await finish(winner, options)
  // Both have failed: the response of a provider describes more than a failed connection.
  if (outcome.kind !== 'failed' || outcome.error !== undefined) return outcome
  const other = await loser.result
  return other.kind === 'failed' ? other : outcome
}

function startRacer(exchange: Exchange, call: Call, turn: Turn, options: AttemptOptions): Racer {
  const race: Racer['race'] = { cancellation: createCancellation(), attempt: undefined }
  exchange.cancellation.onCancel(race.cancellation.cancel)
  // Not the last one: an error must not win against a response that is still expected.
  const result = openCandidate(exchange, call, { ...turn, isLast: false }, { ...options, race })
  const racer: Racer = { race, result, hasFailed: false }
  result.then(
    ({ kind }) => {
      racer.hasFailed = kind !== 'opened'
    },
    () => {
      racer.hasFailed = true
    },
  )
  return racer
}

/** Whether a request has a result within a time. */
function settlesWithin(result: Promise<unknown>, delayMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), delayMs)
    const settle = () => {
      clearTimeout(timer)
      resolve(true)
    }
    result.then(settle, settle)
  })
}

async function finish({ result }: Racer, options: AttemptOptions): Promise<Outcome> {
  const opened = await result
  if (opened.kind !== 'opened') return opened
  makeLatest(opened.attempt)
  describeAttempt(opened.attempt)
  return finishCandidate(opened, options)
}

/** The racer with the first response, else the one that failed last. */
function winnerOf(first: Racer, second: Racer): Promise<Racer> {
  return new Promise((resolve) => {
    let isDecided = false
    let failures = 0
    for (const racer of [first, second]) {
      const fail = () => {
        failures += 1
        if (failures === 2 && !isDecided) resolve(racer)
      }
      racer.result.then((opened) => {
        if (opened.kind !== 'opened') fail()
        else if (!isDecided) {
          isDecided = true
          resolve(racer)
        }
      }, fail)
    }
  })
}

/** Cancels a request that lost. Its provider may charge the prompt. */
function abandon({ race, result, hasFailed }: Racer, { context }: AttemptOptions): void {
  if (hasFailed) return
  race.cancellation.cancel()
  if (race.attempt) race.attempt.isAbandoned = true
  result.then(
    (opened) => {
      if (opened.kind !== 'opened') return
      const { slots, eviction } = opened.attempt.candidate.target
      discard(opened.reply)
      slots?.release()
      eviction.undecided()
      if (opened.record) recordFailure(opened.record, lostRace, context.clock)
    },
    () => {},
  )
}
