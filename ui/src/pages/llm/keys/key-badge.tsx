import type { VirtualKey } from '../../../api/llm/keys.ts'
import { Badge } from '../../../components/feedback/badge.tsx'

const tones = { active: 'good', expired: 'warn', disabled: 'neutral' } as const

/** State of a key. A key that ends within a week is marked, too. */
export function KeyBadge({ virtualKey: { state, expiresAt } }: { virtualKey: VirtualKey }) {
  const soon = state === 'active' && expiresAt !== undefined && Date.parse(expiresAt) - Date.now() < weekMs
  return (
    <Badge tone={soon ? 'warn' : tones[state]} dot>
      {soon ? 'expires soon' : state}
    </Badge>
  )
}

const weekMs = 7 * 86_400_000
