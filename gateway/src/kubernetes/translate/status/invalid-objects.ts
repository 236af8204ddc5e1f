import type { ReadKind } from '../../objects/kinds.ts'
import type { ObjectKey } from '../../objects/meta.ts'
import type { InvalidKey, InvalidObject } from '../../objects/object-set.ts'

/** Key of an object in `ObjectSet.invalid`. */
export function invalidKey(kind: ReadKind, key: ObjectKey): InvalidKey {
  return `${kind}/${key}`
}

const maxMistakes = 5

/** The mistakes of an invalid object in one line. */
export function mistakesText({ mistakes }: InvalidObject): string {
  const shown = mistakes.slice(0, maxMistakes).join('; ')
  const more = mistakes.length - maxMistakes
  return more > 0 ? `${shown}; and ${more} more` : shown
}
