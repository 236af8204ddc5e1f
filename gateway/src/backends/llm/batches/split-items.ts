import {
  backslash,
  closeBrace,
  closeBracket,
  comma,
  openBrace,
  openBracket,
  quote,
} from '../../../lib/json/characters.ts'
import { maxRequests } from './batch.ts'

/** Steps of a scan between two yields. */
const stepsPerSlice = 64 * 1024
const linesPerSlice = 1024

/** Splits a file into its lines, without empty ones: at most one beyond the limit of a batch. */
export function* splitLines(file: Buffer): Generator<void, Buffer[]> {
  const lines: Buffer[] = []
  let start = 0
  // A line takes more memory than its bytes: millions of short ones would exhaust that of the process.
  for (let steps = 1; start < file.length && lines.length <= maxRequests; steps += 1) {
    const found = file.indexOf(0x0a, start)
    const end = found === -1 ? file.length : found
    const line = file.subarray(start, file[end - 1] === 0x0d ? Math.max(start, end - 1) : end)
    if (line.length > 0) lines.push(line)
    start = end + 1
    if (steps % linesPerSlice === 0) yield
  }
  return lines
}

/** Splits the text of a valid JSON array into the texts of its items, at most one beyond the limit. */
export function* splitArray(array: Buffer): Generator<void, Buffer[]> {
  const items: Buffer[] = []
  let depth = 0
  let start = 0
  for (let index = 0; index < array.length && items.length <= maxRequests; index += 1) {
    if (index % stepsPerSlice === 0) yield
    switch (array[index]) {
      case quote:
        index = closingQuote(array, index)
        break
      case openBracket:
      case openBrace:
        depth += 1
        if (depth === 1) start = index + 1
        break
      case closeBracket:
      case closeBrace:
        depth -= 1
        if (depth === 0) items.push(array.subarray(start, index))
        break
      case comma:
        if (depth !== 1) break
        items.push(array.subarray(start, index))
        start = index + 1
        break
    }
  }
  return items
}

function closingQuote(text: Buffer, start: number): number {
  for (let index = start + 1; index < text.length; index += 1) {
    const found = text[index]
    if (found === backslash) index += 1
    else if (found === quote) return index
  }
  return text.length
}
