import { malformed, tooLarge, type Violation } from './violation.ts'

/** Limit of a head and of a trailer section, larger than that of requests: policies and cookies are long. */
export const maxBlockBytes = 64 * 1024

const blockEnd = Buffer.from('\r\n\r\n')
const nothing = Buffer.alloc(0)
const minBlockBytes = 1024

/** Storage of a head or a trailer section that arrives in pieces. Only the first `size` bytes are valid. */
export type Block = { bytes: Buffer; size: number }

export type BlockText = {
  readonly kind: 'text'
  /** The lines, each with its CRLF, without the empty line. */
  readonly text: string
  /** Position behind the empty line. */
  readonly next: number
}

export function createBlock(): Block {
  return { bytes: nothing, size: 0 }
}

/** Reads lines up to the empty line behind them. Returns undefined after storing an incomplete block. */
export function readBlock(block: Block, bytes: Buffer, from: number): BlockText | Violation | undefined {
  if (block.size > 0) return continueBlock(block, bytes, from)
  const end = bytes.indexOf(blockEnd, from)
  if (end === -1) return store(block, bytes, from)
  if (end + blockEnd.length - from > maxBlockBytes) return overLimit()
  return { kind: 'text', text: bytes.toString('latin1', from, end + 2), next: end + blockEnd.length }
}

function continueBlock(block: Block, bytes: Buffer, from: number): BlockText | Violation | undefined {
  const before = block.size
  const violation = store(block, bytes, from)
  const end = block.bytes.subarray(0, block.size).indexOf(blockEnd, Math.max(0, before - 3))
  if (end === -1) return violation
  const text = block.bytes.toString('latin1', 0, end + 2)
  block.bytes = nothing
  block.size = 0
  return { kind: 'text', text, next: from + end + blockEnd.length - before }
}

/**
 * Stores bytes within the limit. An incomplete block is checked, so that no caller waits for its end in vain.
 */
function store(block: Block, bytes: Buffer, from: number): Violation | undefined {
  const before = block.size
  const received = bytes.length - from
  const size = Math.min(maxBlockBytes, before + received)
  if (size > block.bytes.length) {
    const larger = Buffer.allocUnsafe(
      Math.max(minBlockBytes, size, Math.min(maxBlockBytes, 2 * block.bytes.length)),
    )
    block.bytes.copy(larger, 0, 0, before)
    block.bytes = larger
  }
  bytes.copy(block.bytes, before, from, from + size - before)
  block.size = size
  if (before + received > maxBlockBytes) return overLimit()
  return checkLineEnds(block, before)
}

/** Refuses bare CR and bare LF (RFC 9112 section 2.2). */
function checkLineEnds({ bytes, size }: Block, from: number): Violation | undefined {
  for (let at = Math.max(from, 1); at < size; at++) {
    if ((bytes[at] === 0x0a) !== (bytes[at - 1] === 0x0d)) return malformed('bare CR or LF')
  }
  return size > 0 && bytes[0] === 0x0a ? malformed('bare CR or LF') : undefined
}

function overLimit(): Violation {
  return tooLarge(`more than ${maxBlockBytes} bytes of fields`)
}
