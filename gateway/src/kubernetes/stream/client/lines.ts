import { StringDecoder } from 'node:string_decoder'

/** Divides chunks of UTF-8 into lines without their newlines. */
export type LineSplitter = {
  /** The lines that a chunk completes; undefined if one is too long. */
  push(chunk: Buffer): readonly string[] | undefined
}

export function createLineSplitter(maxLength: number): LineSplitter {
  const decoder = new StringDecoder('utf8')
  let pieces: string[] = []
  let length = 0

  return {
    push(chunk) {
      const [first = '', ...rest] = decoder.write(chunk).split('\n')
      length += first.length
      pieces.push(first)
      if (length > maxLength) return undefined
      const last = rest.pop()
      if (last === undefined) return []
      const lines = [pieces.join(''), ...rest]
      pieces = [last]
      length = last.length
      return lines
    },
  }
}
