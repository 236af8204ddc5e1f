import { isTokenByte } from './fields.ts'
import { malformed, tooLarge, type Violation } from './violation.ts'

/** Reader of chunk-size lines (RFC 9112 section 7.1), byte by byte. */
export type ChunkLine = {
  phase: 'size' | 'start' | 'name' | 'value' | 'token' | 'quoted' | 'escaped' | 'next' | 'lf'
  size: number
  digits: number
  /** Bytes of chunk extensions in the whole message. */
  extensionBytes: number
}

/** Hexadecimal digits of a chunk size: 2^48 bytes, below the exact integers. */
const maxSizeDigits = 12

/** Limit of chunk extensions per message, as in Node. Extensions are ignored. */
export const maxExtensionBytes = 16 * 1024

export function createChunkLine(): ChunkLine {
  return { phase: 'size', size: 0, digits: 0, extensionBytes: 0 }
}

/**
 * Reads a byte of a chunk-size line. Returns true behind its LF, after which `size` is the size of the
 * chunk.
 */
export function readChunkLine(line: ChunkLine, byte: number): boolean | Violation {
  if (line.phase === 'size') return readSize(line, byte)
  if (line.phase === 'lf') return byte === 0x0a ? true : malformed('bare CR in a chunk size')
  line.extensionBytes += 1
  if (line.extensionBytes > maxExtensionBytes) return tooLarge('chunk extensions are too large')
  const phase = nextPhase(line.phase, byte)
  if (phase === undefined) return malformed('invalid chunk extension')
  line.phase = phase
  return false
}

/** Names with optional values, which are tokens or quoted. Blanks, which are obsolete, are refused. */
function nextPhase(phase: ChunkLine['phase'], byte: number): ChunkLine['phase'] | undefined {
  switch (phase) {
    case 'start':
      return isTokenByte(byte) ? 'name' : undefined
    case 'name':
      if (byte === 0x3d) return 'value'
      return isTokenByte(byte) ? 'name' : separator(byte)
    case 'value':
      if (byte === 0x22) return 'quoted'
      return isTokenByte(byte) ? 'token' : undefined
    case 'token':
      return isTokenByte(byte) ? 'token' : separator(byte)
    case 'quoted':
      if (byte === 0x22) return 'next'
      if (byte === 0x5c) return 'escaped'
      return isTextByte(byte) ? 'quoted' : undefined
    case 'escaped':
      return isTextByte(byte) ? 'quoted' : undefined
    default:
      return separator(byte)
  }
}

function separator(byte: number): ChunkLine['phase'] | undefined {
  if (byte === 0x0d) return 'lf'
  return byte === 0x3b ? 'start' : undefined
}

function readSize(line: ChunkLine, byte: number): boolean | Violation {
  const digit = hexadecimal(byte)
  if (digit !== -1) {
    line.digits += 1
    line.size = line.size * 16 + digit
    return line.digits > maxSizeDigits ? malformed('chunk size has too many digits') : false
  }
  if (line.digits === 0) return malformed('invalid chunk size')
  if (byte === 0x0d) line.phase = 'lf'
  else if (byte === 0x3b) line.phase = 'start'
  else return malformed('invalid chunk size')
  return false
}

/** Prepares for the next chunk of the same message. */
export function nextChunkLine(line: ChunkLine): void {
  line.phase = 'size'
  line.size = 0
  line.digits = 0
}

function hexadecimal(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

function isTextByte(byte: number): boolean {
  return (byte >= 0x20 && byte !== 0x7f) || byte === 0x09
}
