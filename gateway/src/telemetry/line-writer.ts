/** Writes bytes to the log's file descriptor; reports the number of bytes written. */
export type WriteBytes = (
  fileDescriptor: number,
  bytes: Buffer,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void

export type LineWriter = {
  /** Enqueues one or more lines, each with its newline. Never waits, never throws. */
  write(lines: string): void
  /** Counts lines that were lost elsewhere. */
  lose(lines: number): void
  /** Resolves after all lines are written or lost, within a second. */
  flush(): Promise<void>
}

export type LineWriterOptions = {
  fileDescriptor?: number
  /** Longest delay of a line: a write per line would cost more than building the line. */
  flushEveryMs: number
  /** Characters that trigger an immediate write. */
  fullAt: number
  /** Limit of queued characters; further lines are lost. */
  mostWaiting: number
  /** The line that reports the number of lost lines. */
  lossNotice(lines: number): string
}

const flushLimitMs = 1_000

/**
 * Writes lines in the background, with bounded memory. If the reader of the log is slow, stopped or gone, or
 * the disk is full, lines are lost and their number is logged later; requests continue.
 */
export function createLineWriter(writeBytes: WriteBytes, options: LineWriterOptions): LineWriter {
  const { fileDescriptor = 1, flushEveryMs, fullAt, mostWaiting, lossNotice } = options
  let waiting = ''
  let writing = false
  let lost = 0
  let flushing: (() => void)[] = []

  const timer = setInterval(writeWaiting, flushEveryMs)
  timer.unref()

  function writeWaiting(): void {
    if (writing || waiting === '') return
    const lines = Buffer.from(waiting)
    const lostWithThem = lost + linesIn(lines)
    const bytes = lost === 0 ? lines : Buffer.concat([Buffer.from(lossNotice(lost)), lines])
    waiting = ''
    lost = 0
    writing = true
    send(bytes, lostWithThem)
  }

  function send(bytes: Buffer, lostWithThem: number): void {
    writeBytes(fileDescriptor, bytes, (error, written) => {
      if (error?.code === 'EAGAIN' || error?.code === 'EBUSY') {
        setTimeout(send, flushEveryMs, bytes, lostWithThem).unref()
        return
      }
      if (error) lost += lostWithThem
      else if (written < bytes.byteLength) {
        send(bytes.subarray(written), lostWithThem)
        return
      }
      writing = false
      settle(error !== null)
    })
  }

  function settle(failed: boolean): void {
    if (flushing.length === 0) {
      if (waiting.length >= fullAt) writeWaiting()
      return
    }
    if (waiting !== '' && !failed) {
      writeWaiting()
      return
    }
    for (const done of flushing) done()
    flushing = []
  }

  return {
    write(lines) {
      if (waiting.length + lines.length > mostWaiting) {
        lost += linesIn(Buffer.from(lines))
        return
      }
      waiting += lines
      if (waiting.length >= fullAt) writeWaiting()
    },
    lose(lines) {
      lost += lines
    },
    flush() {
      writeWaiting()
      if (!writing) return Promise.resolve()
      return new Promise((resolve) => {
        const limit = setTimeout(resolve, flushLimitMs)
        flushing.push(() => {
          clearTimeout(limit)
          resolve()
        })
      })
    },
  }
}

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, end + 1)) lines += 1
  return lines
}

const lineFeed = 10
