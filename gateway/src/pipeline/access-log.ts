import type { Delivery } from '../net/http-server.ts'
import type { Exchange } from './exchange.ts'
import { describeError, type Log } from './log.ts'

/** Client-chosen text is cut, so that no request writes long lines. */
const maxLoggedCharacters = 200

/** Writes the one line of a request. Never bodies, header values or query strings: they hold secrets and content. */
export function logAccess(log: Log, exchange: Exchange, delivery: Delivery, endedAt: number): void {
  const { facts, startedAt } = exchange
  const { request, llm, usage, apiKey } = facts
  log.info(
    {
      method: request.method,
      path: shortened(request.path),
      route: exchange.routeName,
      status: delivery.status,
      durationMs: rounded(endedAt - startedAt),
      firstByteMs: delivery.firstByteAt === undefined ? undefined : rounded(delivery.firstByteAt - startedAt),
      bytesSent: delivery.bytesSent,
      client: facts.source.address,
      keyId: apiKey?.['id'],
      model: llm && shortened(llm.requestModel),
      servedBy: llm?.configuredModel,
      provider: llm?.provider,
      stream: llm?.streaming,
      inputTokens: usage?.inputTokens,
      outputTokens: usage?.outputTokens,
      totalTokens: usage?.totalTokens,
      cachedInputTokens: usage?.cachedInputTokens,
      reasoningTokens: usage?.reasoningTokens,
      tokensEstimated: usage?.estimated || undefined,
      refusedBy: exchange.refusedBy,
      incomplete: delivery.complete ? undefined : true,
      error: exchange.failure === undefined ? undefined : describeError(exchange.failure),
    },
    'request',
  )
}

function shortened(text: string): string {
  return text.length > maxLoggedCharacters ? `${text.slice(0, maxLoggedCharacters)}…` : text
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}
