import { createReplayCache } from '../../../../identity/tokens/replay.ts'
import { dollarsOf } from '../../../../lib/picodollars.ts'
import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { safeAmount } from '../../catalog/cost-sum.ts'
import type { BatchCharge } from '../object-ids.ts'
import { processOf } from './batch-charge.ts'
import type { BatchUse } from './batch-use.ts'

/** Corrects the charge of a batch by its use, once. The facts of the call receive the differences. */
export type SettleBatch = (exchange: Exchange, charge: BatchCharge, use: BatchUse) => void

/** Batches that a process remembers; with a database, the ledger remembers all. */
const maxSettled = 100_000

export function createSettleBatch(context: CompileContext): SettleBatch {
  const { memory, clock, retained } = context
  const name = 'llm/settled batches'
  const settled = retained(name, () => createReplayCache(memory, { name, capacity: maxSettled }, clock))
  const process = processOf(context)
  return ({ facts, llm: state }, charge, { usage, cost }) => {
    const { llm } = facts
    if (llm === undefined || state === undefined || !settled.tryUse(charge.request)) return
    const inputTokens = usage.inputTokens - charge.inputTokens
    const outputTokens = usage.outputTokens - charge.outputTokens
    const totalTokens = inputTokens + outputTokens
    facts.usage = { ...usage, inputTokens, outputTokens, totalTokens }
    // Without a price the estimate remains.
    const isPriced = cost.status === 'exact' || cost.status === 'estimated'
    const picodollars = isPriced ? safeAmount(cost.amount ?? 0n) - charge.picodollars : 0
    llm.settles = charge.request
    llm.costStatus = cost.status
    if (isPriced) {
      llm.cost = dollarsOf(picodollars)
      llm.costPicodollars = picodollars
    }
    const isOwn = charge.process === process
    state.settlement = { tokens: totalTokens, picodollars, budgets: charge.budgets, isOwn }
  }
}
