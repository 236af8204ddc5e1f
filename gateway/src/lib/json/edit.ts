import { type JsonMember, membersOf } from './members.ts'
import type { JsonText } from './text.ts'

/** The text of one member's value; undefined without such a member. */
export function memberText(json: JsonText, name: string): string | undefined {
  const { large } = json
  const member = membersIn(json).find((entry) => entry.name === name)
  if (member === undefined) return undefined
  return large
    ? large.bytes.toString('utf8', member.valueStart, member.valueEnd)
    : json.text.slice(member.valueStart, member.valueEnd)
}

/** Positions of the members, located once: a call may read several members and edit the object. */
function membersIn(json: JsonText): readonly JsonMember[] {
  if (json.large) return json.large.members
  json.members ??= membersOf(json.text)
  return json.members
}

/** Changes of the outermost object: JSON texts to set, names to remove. */
export type JsonEdits = { set?: ReadonlyMap<string, string>; remove?: ReadonlySet<string> }

/** Sets or removes members of the outermost object; all other bytes are preserved. */
export function editTopLevel(json: JsonText, edits: JsonEdits): string {
  if (json.large) return editBytes(json, edits).toString()
  const { text } = json
  const places = { members: membersIn(json), open: text.indexOf('{') + 1, end: text.length }
  let result = ''
  for (const piece of editPieces(places, edits)) {
    result += typeof piece === 'string' ? piece : text.slice(piece.from, piece.to)
  }
  return result
}

/** `editTopLevel` with bytes as result, without decoding a large object. */
export function editBytes(json: JsonText, edits: JsonEdits): Buffer {
  const { large } = json
  if (large === undefined) return Buffer.from(editTopLevel(json, edits))
  const { bytes, members } = large
  const places = { members, open: bytes.indexOf('{') + 1, end: bytes.length }
  return Buffer.concat(
    editPieces(places, edits).map((piece) =>
      typeof piece === 'string' ? Buffer.from(piece) : bytes.subarray(piece.from, piece.to),
    ),
  )
}

type MemberPositions = { members: readonly JsonMember[]; open: number; end: number }

/** The edited object as new texts and ranges of the old text. */
function editPieces(
  places: MemberPositions,
  { set, remove }: JsonEdits,
): (string | { from: number; to: number })[] {
  const { members } = places
  const result: (string | { from: number; to: number })[] = []
  let copied = 0
  let keptEnd = places.open
  let kept = 0
  const added = new Map(set)
  for (const [index, member] of members.entries()) {
    const replacement = set?.get(member.name)
    if (replacement !== undefined) {
      added.delete(member.name)
      result.push({ from: copied, to: member.valueStart }, replacement)
      copied = member.valueEnd
    } else if (remove?.has(member.name)) {
      // A member is removed with the comma before it or, without a retained member before it, the comma
      // behind it.
      const from = kept > 0 ? Math.max(copied, keptEnd) : member.keyStart
      result.push({ from: copied, to: from })
      copied = kept > 0 ? member.valueEnd : (members[index + 1]?.keyStart ?? member.valueEnd)
      continue
    }
    kept += 1
    keptEnd = member.valueEnd
  }
  if (added.size > 0) {
    const end = Math.max(copied, keptEnd)
    result.push({ from: copied, to: end })
    copied = end
  }
  for (const [name, value] of added) {
    result.push(`${kept > 0 ? ',' : ''}${JSON.stringify(name)}:${value}`)
    kept += 1
  }
  result.push({ from: copied, to: places.end })
  return result
}
