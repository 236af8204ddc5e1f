import type { JsonValue } from '../../../lib/json.ts'
import { CheckFailure } from '../guard.ts'
import { type ContentReader, echoAt, type GuardedText, numberOf, objectsIn, textParts } from './content.ts'

/** Legacy completions. https://platform.openai.com/docs/api-reference/completions */
export const completionsContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  noEcho: 'null',
  request: ({ prompt, suffix }) => [
    ...promptTexts(prompt),
    ...(typeof suffix === 'string' ? [ofUser(suffix, ['suffix'])] : []),
  ],
  reply: ({ choices }) =>
    objectsIn(choices).map(
      ([index, choice]): GuardedText => ({
        role: 'assistant',
        separator: '',
        parts: textParts(choice['text'], ['choices', index, 'text']).map((part) => ({
          ...part,
          echo: echoAt(choice, ['choices', index]),
        })),
      }),
    ),
  event({ choices }, found) {
    for (const [position, choice] of objectsIn(choices)) {
      const { index, text } = choice
      found({
        element: numberOf(index, position),
        part: 0,
        text: typeof text === 'string' ? text : '',
        path: ['choices', position, 'text'],
        repeats: false,
        echo: echoAt(choice, ['choices', position]),
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
