/** Line splitter for byte streams. */
export type LineSplitter = {
  /** Adds bytes; completed lines are reported before the call returns. */
  push(chunk: Uint8Array): void
}

/**
 * Receives each line without its terminator, decoded as UTF-8. `whole` is false for a line beyond the limit:
 * `text` is its start, and the rest is skipped.
 */
export type OnLine = (text: string, whole: boolean) => void

const lineFeed = 10
const carriageReturn = 13

/**
 * Splits a stream with arbitrary chunk boundaries, also inside characters. Memory is at most one line of
 * `maxBytes`.
 */
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
        append(bytes.subarray(start, end))
        finish()
        start = end + 1
        end = bytes.indexOf(lineFeed, start)
      }
      if (start < bytes.length) append(bytes.subarray(start))
    },
  }

  function append(part: Buffer): void {
    if (skipping) return
    const room = maxBytes - pieceBytes
    if (part.length > room) {
      store(part.subarray(0, room))
      skipping = true
      report(false)
    } else if (part.length > 0) store(part)
  }

  /** Copies the bytes: an incomplete line must not retain its whole chunk. */
  function store(part: Buffer): void {
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
