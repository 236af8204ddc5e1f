import { lineAt, type Text } from './text.ts'

/** Words that stand where a noun or a technical verb belongs, with their limits per 1,000 words. */
export const limits: readonly { words: readonly string[]; perThousand: number }[] = [
  { words: ['what', 'whatever', 'who', 'whoever', 'nobody'], perThousand: 3 },
  {
    words: 'hold holds holding held say says saying said tell tells told telling'.split(' '),
    perThousand: 1,
  },
]

export type Finding = { path: string; line: number; word: string; sentence: string }

/** The limited words of some texts: `findings[n]` belongs to `limits[n]`. */
export type Count = { words: number; findings: Finding[][] }

export function count(texts: readonly Text[]): Count {
  const findings: Finding[][] = limits.map(() => [])
  let words = 0
  for (const text of texts) {
    for (const match of text.text.matchAll(/[A-Za-z]+(?:['’][A-Za-z]+)?/g)) {
      words += 1
      const word = match[0].toLowerCase().replace(/['’].*/, '')
      const row = limits.findIndex((limit) => limit.words.includes(word))
      if (row >= 0) findings[row]?.push(toFinding(text, match.index, word))
    }
  }
  return { words, findings }
}

/** Findings allowed among a number of words: a text of fewer than 1,000 words has the allowance of 1,000. */
export function allowed(words: number, perThousand: number): number {
  return Math.floor((Math.max(words, 1000) * perThousand) / 1000)
}

function toFinding({ path, line, text }: Text, index: number, word: string): Finding {
  const start = Math.max(0, ...[...text.slice(0, index).matchAll(sentenceEnd)].map((end) => end.index + 1))
  const length = text.slice(index).search(sentenceEnd)
  const sentence = text.slice(start, length < 0 ? undefined : index + length + 1)
  return {
    path,
    line: line + lineAt(text, index) - 1,
    word,
    sentence: sentence.replace(/\s+/g, ' ').trim(),
  }
}

const sentenceEnd = /[.!?;:|](?=\s|$)|\n\s*\n|\n\s*(?=[-*#]\s)/g
