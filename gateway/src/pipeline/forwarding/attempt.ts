import { discard, type Reply } from '../../net/http-client/send.ts'
import type { Exchange } from '../exchange.ts'
import type { Policy } from '../policy.ts'
import type { Forwarding } from './forwarding.ts'

/** Result of an attempt. A refusal is the reply of a policy, which no retry changes. */
export type AttemptResult = { readonly kind: 'replied' | 'refused'; readonly reply: Reply }

/**
 * Runs the policies of a chosen backend around one attempt: in order before `call`, in reverse on its reply.
 * A returned reply refuses the attempt. Throws if a policy of the reply fails, with the reply discarded.
 */
export async function attemptThrough(
  policies: readonly Policy[],
  exchange: Exchange,
  call: () => Reply | Promise<Reply>,
): Promise<AttemptResult> {
  const entered: Policy[] = []
  let refusal: Reply | undefined
  for (const configured of policies) {
    const policy = configured.select === undefined ? configured : configured.select(exchange)
    if (policy === undefined) continue
    entered.push(policy)
    const outcome = policy.onRequest?.(exchange)
    refusal = outcome instanceof Promise ? await outcome : outcome
    if (refusal !== undefined) break
  }
  const received = refusal ?? (await call())
  const reply = await leave(entered, exchange, received)
  return { kind: refusal === undefined ? 'replied' : 'refused', reply }
}

async function leave(entered: readonly Policy[], exchange: Exchange, received: Reply): Promise<Reply> {
  let reply = received
  for (const policy of entered.toReversed()) {
    if (policy.onReply === undefined) continue
    try {
      const changed = policy.onReply(exchange, reply)
      reply = changed instanceof Promise ? await changed : changed
    } catch (error) {
      discard(reply)
      throw error
    }
  }
  return reply
}

/** A copy of the changes of a request, so that those of an attempt apply to no other one. */
export function copyForwarding(forwarding: Forwarding | undefined): Forwarding | undefined {
  return forwarding && { ...forwarding, headerEdits: [...forwarding.headerEdits] }
}
