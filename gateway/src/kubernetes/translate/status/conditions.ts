import type { ObjectMeta } from '../../objects/meta.ts'
import type { ConditionState } from './object-status.ts'

/** A condition without the generation of its object. */
export type Finding = Pick<ConditionState, 'type' | 'status' | 'reason' | 'message'>

/** The limit of the API for messages. */
const maxMessageLength = 32_768

/** Conditions of an object, sorted by type, for its current generation. */
export function conditionsOf(
  { metadata }: { readonly metadata: ObjectMeta },
  findings: readonly Finding[],
): readonly ConditionState[] {
  const { generation } = metadata
  return findings
    .map(({ message, ...finding }) => ({
      ...finding,
      message: message.length > maxMessageLength ? `${message.slice(0, maxMessageLength - 3)}...` : message,
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    }))
    .sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0))
}

export function satisfied(type: string, reason: string, message = ''): Finding {
  return { type, status: 'True', reason, message }
}

export function violated(type: string, reason: string, message: string): Finding {
  return { type, status: 'False', reason, message }
}
