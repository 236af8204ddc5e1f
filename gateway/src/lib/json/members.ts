import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  isBlank,
  openBrace,
  openBracket,
  quote,
} from './characters.ts'
import { endOfString, skipBlanks } from './string.ts'

/** Position of a member of the outermost object; the text of its value is `[valueStart, valueEnd)`. */
export type JsonMember = { name: string; keyStart: number; valueStart: number; valueEnd: number }

/** Locates the members of the outermost object of valid text. Only edits need it. */
export function membersOf(text: string): JsonMember[] {
  const members: JsonMember[] = []
  let depth = 0
  let string = 0
  let stringEnd = 0
  let current: JsonMember | undefined
  for (let index = 0; index < text.length; index += 1) {
    switch (text.charCodeAt(index)) {
      case quote:
        string = index
        index = endOfString(text, index)
        stringEnd = index + 1
        break
      case colon:
        if (depth !== 1) break
        current = {
          name: keyName(text, string, stringEnd),
          keyStart: string,
          valueStart: skipBlanks(text, index + 1),
          valueEnd: 0,
        }
        break
      case comma:
        if (depth === 1 && current) {
          closeMember(text, members, current, index)
          current = undefined
        }
        break
      case openBrace:
      case openBracket:
        depth += 1
        break
      case closeBrace:
      case closeBracket:
        if (depth === 1 && current) {
          closeMember(text, members, current, index)
          current = undefined
        }
        depth -= 1
        break
    }
  }
  return members
}

function closeMember(text: string, members: JsonMember[], member: JsonMember, end: number): void {
  let valueEnd = end
  while (isBlank(text.charCodeAt(valueEnd - 1))) valueEnd -= 1
  member.valueEnd = valueEnd
  members.push(member)
}

/** The key between two quotes, unescaped. */
export function keyName(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? String(JSON.parse(text.slice(start, end))) : raw
}
