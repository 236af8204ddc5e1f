import { encodeFields } from '../http2-client/hpack/literals.ts'
import type { HeaderField } from '../http2-client/hpack/static-table.ts'
import { isMetadataName } from './metadata-name.ts'
import { failed, type GrpcStatus, statusCodes } from './status.ts'

/** Metadata of a call as field lines. */
export type Metadata = readonly HeaderField[]

/** Encodes the header fields of the calls of a method. */
export type RequestHead = {
  /** `deadlineMs` undefined: without a limit. */
  encode(deadlineMs: number | undefined, metadata: Metadata): Uint8Array | (GrpcStatus & { kind: 'failed' })
}

/** The gRPC protocol limits a time to 8 digits. */
const maxDigits = 99_999_999

export function createRequestHead(path: string, authority: string, isSecure: boolean): RequestHead {
  const common = encodeFields([
    [':method', 'POST'],
    [':scheme', isSecure ? 'https' : 'http'],
    [':path', path],
    [':authority', authority],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
    ['grpc-accept-encoding', 'identity'],
    ['user-agent', 'tollgate'],
  ])
  /** Most calls have the same time limit. */
  let timed = { ms: -1, block: common }

  function withTimeout(deadlineMs: number): Buffer {
    const ms = Math.max(1, Math.floor(deadlineMs))
    if (timed.ms === ms) return timed.block
    const timeout = ms <= maxDigits ? `${ms}m` : `${Math.min(maxDigits, Math.floor(ms / 1000))}S`
    timed = { ms, block: Buffer.concat([common, encodeFields([['grpc-timeout', timeout]])]) }
    return timed.block
  }

  return {
    encode(deadlineMs, metadata) {
      const block = deadlineMs === undefined ? common : withTimeout(deadlineMs)
      if (metadata.length === 0) return block
      for (const [name, value] of metadata) {
        if (!isMetadataName(name) || !isValue(value))
          return failed(statusCodes.internal, 'a field of the metadata is not valid')
      }
      return Buffer.concat([block, encodeFields(metadata)])
    },
  }
}

function isValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}
