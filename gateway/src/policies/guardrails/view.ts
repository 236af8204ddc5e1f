import type { TextGroup } from './content/content-reader.ts'
import { type ContentScope, isOptional, scopeOfRole } from './content/scopes/content-scope.ts'
import { writeBack } from './content/text-change.ts'
import { CheckFailure, type Guard, type GuardText, type Phase } from './guard.ts'

/** Text passed to guards. A `fixed` text has no location in the body and cannot be modified. */
export type Content = GuardText & {
  readonly fixed: boolean
  /** The content is JSON and must remain JSON of the same kind. */
  readonly isJson?: boolean | undefined
  /** Undefined if no guard has scopes. */
  readonly scope?: ContentScope | undefined
  readonly group?: TextGroup | undefined
}

/** Texts that one guard receives. */
export type View = {
  readonly shown: readonly Content[]
  /** Returns all texts with the new contents of the shown ones. */
  apply(contents: readonly string[]): readonly Content[]
}

/**
 * Selects the texts of a guard by its scopes. A guard without scopes receives the texts of a group as one, as
 * if no guard had scopes.
 */
export function viewOf(texts: readonly Content[], { scopes }: Pick<Guard, 'scopes'>, phase: Phase): View {
  if (scopes === undefined && texts.every(({ scope }) => scope === undefined)) return wholeView(texts)
  const members: { indexes: number[]; group: TextGroup | undefined }[] = []
  for (const [index, { role, scope: own, group }] of texts.entries()) {
    const scope = own ?? (phase === 'request' ? scopeOfRole(role) : 'messages')
    const isShown = scopes === undefined ? !isOptional(scope, phase) : scopes.has(scope)
    if (!isShown) continue
    const last = members.at(-1)
    if (scopes === undefined && group !== undefined && last?.group === group) last.indexes.push(index)
    else members.push({ indexes: [index], group: scopes === undefined ? group : undefined })
  }
  const shown = members.map(({ indexes, group }) => joinedContent(indexes, group, texts))
  return {
    shown,
    apply(contents) {
      const changed = [...texts]
      for (const [position, { indexes, group }] of members.entries()) {
        const content = contents[position]
        if (content === undefined || content === shown[position]?.content) continue
        const pieces = indexes.map((index) => texts[index]?.content ?? '')
        const written = distributed(pieces, group?.separator ?? '', content)
        for (const [place, index] of indexes.entries()) {
          const text = texts[index]
          if (text !== undefined) changed[index] = { ...text, content: written[place] ?? '' }
        }
      }
      return changed
    },
  }
}

function wholeView(texts: readonly Content[]): View {
  return {
    shown: texts,
    apply: (contents) => texts.map((text, index) => ({ ...text, content: contents[index] ?? text.content })),
  }
}

function joinedContent(
  indexes: readonly number[],
  group: TextGroup | undefined,
  texts: readonly Content[],
): Content {
  const found = indexes.flatMap((index) => texts[index] ?? [])
  const [first = { role: '', content: '', fixed: true }] = found
  if (group === undefined) return first
  const content = found.map((text) => text.content).join(group.separator)
  return { role: group.role, content, fixed: found.every(({ fixed }) => fixed) }
}

/**
 * Maximum characters whose change is distributed to several texts: the comparison of words blocks traffic.
 */
const maxDistributed = 1024 * 1024

function distributed(pieces: readonly string[], separator: string, content: string): readonly string[] {
  const length = pieces.reduce((sum, piece) => sum + piece.length, content.length)
  if (pieces.length > 1 && length > maxDistributed) throw new CheckFailure('text too long for its scopes')
  const written = writeBack(pieces, separator, content)
  if (written === undefined) throw new CheckFailure('text for an element without text')
  return written
}
