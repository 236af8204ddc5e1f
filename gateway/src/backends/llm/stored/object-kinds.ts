/** Kinds of objects in the account of a provider that requests name by id. */
export const objectKinds = [
  'conversations',
  'prompts',
  'vectorStores',
  'containers',
  'items',
  'files',
  'skills',
  'caches',
] as const

export type ObjectKind = (typeof objectKinds)[number]

/** Objects in responses that later requests name. */
export type SealedKind = 'item' | 'container' | 'audio'
