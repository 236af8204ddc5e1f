import { StringDecoder } from 'node:string_decoder'
import { ApiError } from '../requests/api-error.ts'

/**
 * Splits a stream into lines without their newline. Throws an `ApiError` at a line above the limit; text
 * after the last newline is dropped, because it is an incomplete event.
 */
export async function* readLines(
  stream: AsyncIterable<unknown>,
  maxLength: number,
): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder('utf8')
  let parts: string[] = []
  let length = 0
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue
    const text = decoder.write(chunk)
    let start = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      parts.push(text.slice(start, end))
      const line = parts.length === 1 ? (parts[0] ?? '') : parts.join('')
      parts = []
      length = 0
      start = end + 1
      if (line.length > maxLength) throw tooLong(maxLength)
      if (line !== '') yield line
    }
    if (start === text.length) continue
    parts.push(text.slice(start))
    length += text.length - start
    if (length > maxLength) throw tooLong(maxLength)
  }
}

function tooLong(maxLength: number): ApiError {
  return new ApiError({ status: 0 }, `watch event is longer than ${maxLength} characters`)
}
