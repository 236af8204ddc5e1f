import type { ObjectKey } from '../../objects/meta.ts'
import { controllerName } from '../controller-name.ts'
import { conditionsOf, type Finding, satisfied, violated } from '../status/conditions.ts'
import type { ObjectStatus } from '../status/object-status.ts'
import type { AttachingRoute, Attachment } from './attachment/attachment.ts'
import type { RuleMistake } from './rules/rule-plan.ts'

/** A reference that does not resolve. `message` begins with its path. */
export type Unresolved = { readonly reason: string; readonly message: string }

/** The rules of a route with mistakes, on one Gateway. */
export type RuleFindings = {
  readonly rules: number
  /** Indexes of rules with mistakes. */
  readonly invalid: readonly number[]
  readonly mistakes: readonly RuleMistake[]
}

/** Limits the messages of one condition. */
const maxMessages = 8

/** Whether a Gateway accepts a route: a route without any valid rule is refused. */
export function isAccepted({ refusal }: Attachment, findings: RuleFindings): boolean {
  return refusal === undefined && !isInvalid(findings)
}

function isInvalid({ rules, invalid, mistakes }: RuleFindings): boolean {
  return mistakes.length > 0 && invalid.length >= rules
}

/** The status of a route: conditions for each reference to a Gateway of this controller. */
export function routeStatus(
  route: AttachingRoute,
  key: ObjectKey,
  attachments: readonly { readonly attachment: Attachment; readonly findings: RuleFindings }[],
  unresolved: readonly Unresolved[],
): ObjectStatus {
  const resolved = resolvedRefs(unresolved)
  return {
    kind: route.kind,
    key,
    of: 'route',
    status: {
      parents: attachments.map(({ attachment, findings }) => ({
        parentRef: attachment.parentRef,
        controllerName,
        conditions: conditionsOf(route, [...acceptance(attachment, findings), resolved]),
      })),
    },
  }
}

function acceptance({ refusal }: Attachment, findings: RuleFindings): Finding[] {
  if (refusal !== undefined) return [violated('Accepted', refusal.reason, refusal.message)]
  const { invalid, mistakes } = findings
  const messages = joined(mistakes)
  const reason = mistakes[0]?.reason ?? 'UnsupportedValue'
  if (isInvalid(findings)) return [violated('Accepted', reason, messages)]
  const accepted = satisfied('Accepted', 'Accepted')
  if (mistakes.length === 0) return [accepted]
  const dropped = `Dropped Rule ${invalid.join(', ')}: ${messages}`
  return [accepted, satisfied('PartiallyInvalid', reason, dropped)]
}

function resolvedRefs(unresolved: readonly Unresolved[]): Finding {
  const [first] = unresolved
  if (first === undefined) return satisfied('ResolvedRefs', 'ResolvedRefs')
  return violated('ResolvedRefs', first.reason, joined(unresolved))
}

function joined(found: readonly { readonly message: string }[]): string {
  const messages = [...new Set(found.map(({ message }) => message))]
  const shown = messages.slice(0, maxMessages)
  const more = messages.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}
