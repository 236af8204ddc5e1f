import type { Duplex } from 'node:stream'

/** How long a side may take to read the rest once the other has closed. */
const lingerMs = 30_000

/** Bytes of a spliced pair so far. */
export type SpliceCount = { toLeft: number; toRight: number }

/**
 * Joins two connections until both directions have ended. A side that reads slowly slows the other down; the end of one
 * direction is passed on and leaves the other open; a side that breaks takes the other with it. `closed` is called once.
 */
export function splice(left: Duplex, right: Duplex, closed: (count: SpliceCount) => void): SpliceCount {
  const count: SpliceCount = { toLeft: 0, toRight: 0 }
  let open = 2

  function onClose() {
    open -= 1
    if (open === 0) closed(count)
  }

  pass(left, right, (bytes) => {
    count.toRight += bytes
  })
  pass(right, left, (bytes) => {
    count.toLeft += bytes
  })
  for (const [side, other] of [
    [left, right],
    [right, left],
  ] as const) {
    // A broken connection also closes, which is where it is dealt with.
    side.on('error', ignore)
    side.once('close', () => {
      // What was read before an orderly end may still be on its way to a side that reads slowly.
      if (side.readableEnded && !side.errored) endSoon(other)
      else other.destroy()
      onClose()
    })
    if (side.destroyed) {
      other.destroy()
      if (side.closed) onClose()
    }
  }
  return count
}

function pass(from: Duplex, to: Duplex, counted: (bytes: number) => void): void {
  from.on('data', (chunk: Uint8Array) => {
    counted(chunk.byteLength)
    if (!to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
  from.on('end', () => to.end())
  from.resume()
}

function endSoon(side: Duplex): void {
  if (side.writableFinished || side.destroyed) {
    side.destroy()
    return
  }
  const timer = setTimeout(() => side.destroy(), lingerMs)
  side.once('close', () => clearTimeout(timer))
  side.end(() => side.destroy())
}

function ignore(): void {}
