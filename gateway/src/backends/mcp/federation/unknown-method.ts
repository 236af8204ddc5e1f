import { parseJsonObject } from '../../../lib/json/json.ts'
import { errorCodeOf, type Outcome } from '../message/gateway-request.ts'
import { methodNotFound } from '../message/json-rpc.ts'
import type { Message } from '../message/message.ts'
import { readTargetRefusal } from '../targets/target-refusal.ts'

/**
 * Whether a target lacks the method of a request: with a JSON-RPC error, which has the status 404 in revision
 * 2026-07-28 (Streamable HTTP, Protocol Version Header).
 */
export function isUnknownMethod(outcome: Outcome, request: Message): boolean {
  if (outcome.kind === 'response') return errorCodeOf(outcome.message) === methodNotFound
  const { failure } = outcome
  if (failure.kind !== 'reply') return false
  const refusal = readTargetRefusal(failure.reply, request.value['id'])
  return refusal.kind === 'error' && parseJsonObject(refusal.text)?.['code'] === methodNotFound
}
