import type { JsonValue } from '../../../lib/json/json.ts'
import { CheckFailure } from '../guard.ts'
import type { GuardedText } from './content-reader.ts'

/** Returns the texts of a `prompt`: a string or a list. Throws `CheckFailure` on other values. */
export function promptTexts(prompt: JsonValue | undefined): GuardedText[] {
  if (prompt === undefined || prompt === null) return []
  if (typeof prompt === 'string') return [userText(prompt, ['prompt'])]
  if (!Array.isArray(prompt)) throw new CheckFailure('a prompt that is not text')
  return prompt.map((item, index) => {
    // Text encoded as token numbers is not readable.
    if (typeof item !== 'string') throw new CheckFailure('an unreadable prompt of token numbers')
    return userText(item, ['prompt', index])
  })
}

export function userText(text: string, path: (string | number)[]): GuardedText {
  return { role: 'user', separator: '', parts: [{ text, path }] }
}
