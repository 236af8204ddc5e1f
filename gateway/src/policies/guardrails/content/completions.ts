import { messageTexts } from './chat.ts'
import { type ContentReader, type GuardedText, logprobsPath, numberOf, objectsIn } from './content-reader.ts'
import { textParts } from './parts.ts'
import { promptTexts, userText } from './prompt.ts'

/** Legacy completions. https://platform.openai.com/docs/api-reference/completions */
export const completionsContent: ContentReader = {
  separator: '',
  dropsEmptied: false,
  emptyLogprobs: 'null',
  // Some services accept messages instead of a `prompt`.
  request: ({ prompt, suffix, messages }, reading) => [
    ...promptTexts(prompt),
    ...(typeof suffix === 'string' ? [userText(suffix, ['suffix'])] : []),
    ...messageTexts(messages, reading),
  ],
  reply: ({ choices }, reading) =>
    objectsIn(choices).map(
      ([index, choice]): GuardedText => ({
        role: 'assistant',
        separator: '',
        parts: textParts(choice['text'], ['choices', index, 'text'], reading).map((part) => ({
          ...part,
          logprobs: logprobsPath(choice, ['choices', index]),
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
        logprobs: logprobsPath(choice, ['choices', position]),
      })
    }
  },
}
