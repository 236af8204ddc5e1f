import type { JsonValue } from '../../../lib/json/json.ts'
import { CheckFailure } from '../guard.ts'
import type { GuardedText } from './content-reader.ts'

/** The texts of a `prompt`: one, or a list of them. Throws `CheckFailure` on one that is no text. */
export function promptTexts(prompt: JsonValue | undefined): GuardedText[] {
  if (prompt === undefined || prompt === null) return []
  if (typeof prompt === 'string') return [userText(prompt, ['prompt'])]
  if (!Array.isArray(prompt)) throw new CheckFailure('a prompt that is no text')
  return prompt.map((item, index) => {
    // Numbers of tokens hold text that nobody here can read.
    if (typeof item !== 'string') throw new CheckFailure('a prompt of token numbers cannot be read')
    return userText(item, ['prompt', index])
  })
}

export function userText(text: string, path: (string | number)[]): GuardedText {
  return { role: 'user', separator: '', parts: [{ text, path }] }
}
