import type { JsonValue } from '../../../lib/json.ts'
import { CheckFailure } from '../guard.ts'
import { type ContentReader, type GuardedText, numberOf, objectsIn } from './content.ts'

/** Legacy completions. https://platform.openai.com/docs/api-reference/completions */
export const completionsContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  request: ({ prompt, suffix }) => [
    ...promptTexts(prompt),
    ...(typeof suffix === 'string' ? [ofUser(suffix, ['suffix'])] : []),
  ],
  reply: ({ choices }) =>
    objectsIn(choices).map(
      ([index, { text }]): GuardedText => ({
        role: 'assistant',
        separator: '',
        parts: typeof text === 'string' ? [{ text, path: ['choices', index, 'text'] }] : [],
      }),
    ),
  event({ choices }, found) {
    for (const [position, { index, text }] of objectsIn(choices)) {
      found({
        element: numberOf(index, position),
        part: 0,
        text: typeof text === 'string' ? text : '',
        path: ['choices', position, 'text'],
        repeats: false,
      })
    }
  },
}

function promptTexts(prompt: JsonValue | undefined): GuardedText[] {
  if (typeof prompt === 'string') return [ofUser(prompt, ['prompt'])]
  if (!Array.isArray(prompt)) return []
  return prompt.map((item, index) => {
    // Numbers of tokens hold text that nobody here can read.
    if (typeof item !== 'string') throw new CheckFailure('a prompt of token numbers cannot be read')
    return ofUser(item, ['prompt', index])
  })
}

function ofUser(text: string, path: (string | number)[]): GuardedText {
  return { role: 'user', separator: '', parts: [{ text, path }] }
}
