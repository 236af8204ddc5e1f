import type { CompileContext } from '../../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../../pipeline/exchange.ts'
import { digest, keyOf } from '../../stored/sealed-ids.ts'
import type { BatchCharge, BatchFacts } from '../object-ids.ts'

/** Longer lists would make ids too long for a path. */
const maxBudgetsLength = 2_000

/** The charge of a call that creates a batch. */
export function chargeOf(
  { requestId = '', budgets = [] }: Exchange,
  { estimate, facts, process }: { facts: BatchFacts; process: string; estimate: number | undefined },
): BatchCharge {
  const charged = budgets.map(({ budget, value, window }) => ({
    budget,
    value,
    windowStart: window.start,
    windowEnd: window.end,
  }))
  const isShort = JSON.stringify(charged).length <= maxBudgetsLength
  return {
    ...facts,
    request: requestId,
    process,
    picodollars: estimate ?? 0,
    budgets: isShort ? charged : [],
  }
}

/** Identity of a process of the gateway. */
export function processOf({ processKey }: Pick<CompileContext, 'processKey'>): string {
  return digest(keyOf({ sessionKey: undefined, processKey }, 'llm-batches/process/1').toString('base64'))
}
