/** Frame types of RFC 9113 section 6. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flags = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const

/** Error codes of RFC 9113 section 7. */
export const errorCodes = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
} as const

/** Settings of RFC 9113 section 6.5.2. */
export const settingIds = {
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const

export const frameHeaderBytes = 9
/** Default of SETTINGS_MAX_FRAME_SIZE, which this client does not change. */
export const maxFrameBytes = 16_384
/** Default of SETTINGS_INITIAL_WINDOW_SIZE, and first window of a connection. */
export const defaultWindow = 65_535
export const maxWindow = 2 ** 31 - 1

/** A violation of the protocol by the server. It ends the connection with an error code. */
export class Http2Violation extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.name = 'Http2Violation'
    this.code = code
  }
}

/** Receives a frame. The payload is valid only during the call unless it is copied. */
export type OnFrame = (frame: Frame) => void

/** A received frame. One object serves all frames of a connection. */
export type Frame = { type: number; flags: number; streamId: number; payload: Buffer }

/**
 * Splits received bytes into frames. Throws `Http2Violation` for a frame that is too large, and for a first
 * one that is not the preface of a server (RFC 9113 section 3.4).
 */
export function createFrameReader(onFrame: OnFrame): (bytes: Buffer) => void {
  const frame: Frame = { type: 0, flags: 0, streamId: 0, payload: Buffer.alloc(0) }
  let rest: Buffer | undefined
  let isOpen = false

  return (received) => {
    const bytes = rest === undefined ? received : Buffer.concat([rest, received])
    rest = undefined
    let position = 0
    while (bytes.length - position >= frameHeaderBytes) {
      const length = bytes.readUIntBE(position, 3)
      if (!isOpen && !isPreface(bytes))
        throw new Http2Violation(errorCodes.protocol, 'the server does not support HTTP/2')
      isOpen = true
      if (length > maxFrameBytes)
        throw new Http2Violation(errorCodes.frameSize, 'the server sent a frame that is too large')
      const start = position + frameHeaderBytes
      if (bytes.length - start < length) break
      frame.type = bytes[position + 3] ?? 0
      frame.flags = bytes[position + 4] ?? 0
      frame.streamId = bytes.readUInt32BE(position + 5) & 0x7fffffff
      frame.payload = bytes.subarray(start, start + length)
      position = start + length
      onFrame(frame)
    }
    if (position < bytes.length) rest = bytes.subarray(position)
  }
}

/** Whether bytes begin with settings that are not an acknowledgement. */
function isPreface(bytes: Buffer): boolean {
  return bytes[3] === frameTypes.settings && bytes[4] === 0 && bytes.readUInt32BE(5) === 0
}
