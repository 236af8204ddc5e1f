import type { Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import type { Policy } from '../../pipeline/policy.ts'

/**
 * Applies a check of LLM requests to a batch and to each request in it, as if each were a call of its own.
 * Reply and end of the policy are those of the batch.
 */
export function withBatchedRequests(policy: Policy): Policy {
  const check = (exchange: Exchange) => policy.onRequest?.(exchange)
  return {
    ...policy,
    onRequest(exchange) {
      const eachRequest = exchange.llm?.eachRequest
      return eachRequest === undefined ? check(exchange) : checkAll(exchange, check, eachRequest)
    },
  }
}

type EachRequest = NonNullable<NonNullable<Exchange['llm']>['eachRequest']>

async function checkAll(
  exchange: Exchange,
  check: Parameters<EachRequest>[0],
  eachRequest: EachRequest,
): Promise<Reply | undefined> {
  return (await check(exchange)) ?? eachRequest(check)
}
