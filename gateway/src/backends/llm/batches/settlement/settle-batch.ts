import { dollarsOf } from '../../../../lib/picodollars.ts'
import { createRecentRecords } from '../../../../lib/planes/recent-records.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import type { Usage } from '../../../../pipeline/facts/llm-facts.ts'
import { safeAmount } from '../../catalog/cost-sum.ts'
import type { BatchCharge } from '../object-ids.ts'
import { processOf } from './batch-charge.ts'
import type { ReadUse } from './batch-use.ts'

/**
 * Corrects the charge of a batch by its use, once. Results that were read in part raise the charge up to
 * their use, and never lower it. The facts of the call receive the differences.
 */
export type SettleBatch = (exchange: Exchange, charge: BatchCharge, use: ReadUse) => void

/** Batches that a process remembers; with a database, the ledger remembers all. */
const maxSettled = 100_000

/** Numbers of a batch: 1 after all results, corrections, and their sums. */
const cells = { isDone: 0, steps: 1, tokens: 2, picodollars: 3 } as const

/** A correction: its number from 1, and its amounts beyond those of earlier ones. */
type Correction = { readonly step: number; readonly tokens: number; readonly picodollars: number }

export function createSettleBatch(context: CompileContext): SettleBatch {
  const { memory, clock, retained } = context
  const name = 'llm/settled batches'
  const size = Object.keys(cells).length
  const records = retained(name, () =>
    createRecentRecords(memory, { name, maxRecords: maxSettled, size }, clock),
  )
  const process = processOf(context)

  /** The amounts are differences to the charge. Undefined if they change nothing. */
  function correct(
    id: string,
    { tokens, picodollars }: Omit<Correction, 'step'>,
    extent: ReadUse['extent'],
  ): Correction | undefined {
    return records.update(id, (numbers, from) => {
      const at = (cell: keyof typeof cells) => numbers[from + cells[cell]] ?? 0
      const least = extent === 'part' ? 0 : Number.NEGATIVE_INFINITY
      const added = {
        tokens: Math.max(least, tokens - at('tokens')),
        picodollars: Math.max(least, picodollars - at('picodollars')),
      }
      const isEmpty = extent === 'part' && added.tokens === 0 && added.picodollars === 0
      if (at('isDone') === 1 || isEmpty) return undefined
      const step = at('steps') + 1
      numbers[from + cells.isDone] = extent === 'all' ? 1 : 0
      numbers[from + cells.steps] = step
      numbers[from + cells.tokens] = at('tokens') + added.tokens
      numbers[from + cells.picodollars] = at('picodollars') + added.picodollars
      return { step, ...added }
    })
  }

  return ({ facts, llm: state }, charge, { usage, cost, extent }) => {
    const { llm } = facts
    if (llm === undefined || state === undefined) return
    // Without a price the estimate remains.
    const isPriced = cost.status === 'exact' || cost.status === 'estimated'
    const difference = {
      tokens: usage.totalTokens - charge.inputTokens - charge.outputTokens,
      picodollars: isPriced ? safeAmount(cost.amount ?? 0n) - charge.picodollars : 0,
    }
    const correction = correct(charge.request, difference, extent)
    if (correction === undefined) return
    const { step, tokens, picodollars } = correction
    facts.usage = extent === 'all' ? differenceOf(usage, charge, tokens) : addedUsage(tokens)
    // The ledger applies each correction once.
    llm.settles = step === 1 ? charge.request : `${charge.request}/${step}`
    llm.costStatus = cost.status
    if (isPriced) {
      llm.cost = dollarsOf(picodollars)
      llm.costPicodollars = picodollars
    }
    const isOwn = charge.process === process
    state.settlement = { tokens, picodollars, budgets: charge.budgets, isOwn }
  }
}

/** The use of all requests, whose tokens are differences to the charge. */
function differenceOf(usage: Usage, charge: BatchCharge, totalTokens: number): Usage {
  const inputTokens = usage.inputTokens - charge.inputTokens
  return { ...usage, inputTokens, outputTokens: totalTokens - inputTokens, totalTokens }
}

/** Tokens beyond those that were charged. */
function addedUsage(tokens: number): Usage {
  return {
    inputTokens: 0,
    outputTokens: tokens,
    totalTokens: tokens,
    cachedInputTokens: 0,
    cacheCreationInputTokens: 0,
    reasoningTokens: 0,
    estimated: true,
  }
}
