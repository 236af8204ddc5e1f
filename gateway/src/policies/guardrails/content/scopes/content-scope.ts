/** Kinds of content that a guard can be restricted to. */
export const contentScopes = [
  'systemPrompt',
  'messages',
  'toolOutput',
  'toolInput',
  'toolDefinitions',
  'reasoning',
] as const

export type ContentScope = (typeof contentScopes)[number]

/** Scope of the text of a message in a request, by its role. */
export function scopeOfRole(role: string): ContentScope {
  switch (role) {
    case 'system':
    case 'developer':
      return 'systemPrompt'
    case 'tool':
    case 'function':
      return 'toolOutput'
    default:
      return 'messages'
  }
}

/**
 * Whether only guards that name the scope receive its texts. Reasoning in a request is text of the client
 * like all other.
 */
export function isOptional(scope: ContentScope, phase: 'request' | 'response'): boolean {
  return (
    scope === 'toolInput' || scope === 'toolDefinitions' || (scope === 'reasoning' && phase === 'response')
  )
}
