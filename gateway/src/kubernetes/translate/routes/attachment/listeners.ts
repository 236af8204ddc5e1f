import type { ObjectKey } from '../../../objects/meta.ts'
import type { ListenerPlan } from '../../plan.ts'
import type { Attachment } from './attachment.ts'

/** The listeners of attachments by Gateway, without repetitions. */
export function listenersByGateway(
  attachments: readonly Attachment[],
): ReadonlyMap<ObjectKey, readonly ListenerPlan[]> {
  const byGateway = new Map<ObjectKey, ListenerPlan[]>()
  for (const { gateway, listeners } of attachments) {
    const known = byGateway.get(gateway) ?? []
    byGateway.set(gateway, known)
    for (const listener of listeners) if (!known.includes(listener)) known.push(listener)
  }
  return byGateway
}
