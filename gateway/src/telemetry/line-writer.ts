/** Writes bytes to where the log goes; tells how many it took. */
export type WriteBytes = (
  fileDescriptor: number,
  bytes: Buffer,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void

export type LineWriter = {
  /** Takes a line with its newline. Never waits and never fails. */
  write(line: string): void
  /** Resolves once everything is written, or cannot be; at the latest after a second. */
  flush(): Promise<void>
}

export type LineWriterOptions = {
  fileDescriptor?: number
  /** Lines wait at most this long for company: one write for each would cost more than building it. */
  flushEveryMs: number
  /** Characters that are written without waiting for more. */
  fullAt: number
  /** Characters that may wait; lines beyond are lost. */
  mostWaiting: number
  /** The line that says how many were lost. */
  lossNotice(lines: number): string
}

const flushLimitMs = 1_000

/**
 * Writes lines in the background. Whoever reads the log may be slow, stopped or gone, and the disk may be full: then
 * lines are lost, which is noted as soon as there is somebody to tell, but requests are served all the same.
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
    write(line) {
      if (waiting.length + line.length > mostWaiting) {
        lost += 1
        return
      }
      waiting += line
      if (waiting.length >= fullAt) writeWaiting()
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
