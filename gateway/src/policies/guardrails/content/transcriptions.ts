import { CheckFailure } from '../guard.ts'
import {
  type ContentReader,
  type GuardedText,
  logprobsPath,
  objectsIn,
  stringOf,
  type TextPart,
} from './content-reader.ts'
import { userText } from './prompt.ts'

/** Transcriptions and translations of audio. https://platform.openai.com/docs/api-reference/audio */
export const transcriptionsContent: ContentReader = {
  separator: ' ',
  dropsEmptied: false,
  emptyLogprobs: '[]',
  request({ prompt }) {
    if (prompt === undefined || prompt === null) return []
    if (typeof prompt !== 'string') throw new CheckFailure('a prompt that is not text')
    return [userText(prompt, ['prompt'])]
  },
  // Segments and words repeat the text, and are checked apart.
  reply(body) {
    const { text, segments, words } = body
    return [
      [{ text: stringOf(text), path: ['text'], logprobs: logprobsPath(body, []) }],
      objectsIn(segments).map(([index, segment]): TextPart => {
        return { text: stringOf(segment['text']), path: ['segments', index, 'text'] }
      }),
      objectsIn(words).map(([index, { word }]): TextPart => {
        return { text: stringOf(word), path: ['words', index, 'word'] }
      }),
    ].flatMap((all, index): GuardedText[] => {
      const parts = all.filter((part) => part.text !== '')
      return parts.length === 0 ? [] : [{ role: 'assistant', separator: index === 2 ? ' ' : '', parts }]
    })
  },
  event(event, found) {
    const { type, delta, text } = event
    if (type === 'transcript.text.delta' && typeof delta === 'string') {
      const logprobs = logprobsPath(event, [])
      found({ element: 0, part: 0, text: delta, path: ['delta'], repeats: false, logprobs })
    } else if (type === 'transcript.text.segment' && typeof text === 'string') {
      found({ element: 1, part: 0, text, path: ['text'], repeats: false })
    } else if (typeof text === 'string') {
      const logprobs = logprobsPath(event, [])
      found({ element: 0, part: 0, text, path: ['text'], repeats: true, logprobs })
    }
  },
}
