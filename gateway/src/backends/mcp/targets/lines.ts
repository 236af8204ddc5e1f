/** Cuts bytes into lines. */
export type LineSplitter = {
  /** Takes the next bytes; every line they complete is reported before the call returns. */
  push(chunk: Uint8Array): void
}

/**
 * Told each line without its end, decoded as UTF-8. `whole` is false where the line is longer than the bound: then
 * `text` is its beginning, and the rest of the line is skipped.
 */
export type OnLine = (text: string, whole: boolean) => void

const lineFeed = 10
const carriageReturn = 13

/** Cuts a stream that may be chunked anywhere, also inside a character. Memory is at most one line of `maxBytes`. */
export function createLineSplitter(maxBytes: number, onLine: OnLine): LineSplitter {
  let pieces: Buffer[] = []
  let pieceBytes = 0
  let skipping = false

  return {
    push(chunk) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
      let start = 0
      let end = bytes.indexOf(lineFeed)
      while (end !== -1) {
        take(bytes.subarray(start, end))
        finish()
        start = end + 1
        end = bytes.indexOf(lineFeed, start)
      }
      if (start < bytes.length) take(bytes.subarray(start))
    },
  }

  function take(part: Buffer): void {
    if (skipping) return
    const room = maxBytes - pieceBytes
    if (part.length > room) {
      keep(part.subarray(0, room))
      skipping = true
      report(false)
    } else if (part.length > 0) keep(part)
  }

  /** A copy: a line that is not complete yet must not hold on to the whole chunk it began in. */
  function keep(part: Buffer): void {
    pieces.push(Buffer.from(part))
    pieceBytes += part.length
  }

  function finish(): void {
    if (!skipping) report(true)
    skipping = false
  }

  function report(whole: boolean): void {
    const line = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, pieceBytes)
    pieces = []
    pieceBytes = 0
    if (line === undefined) return
    const end = line.at(-1) === carriageReturn ? line.length - 1 : line.length
    onLine(line.toString('utf8', 0, end), whole)
  }
}
