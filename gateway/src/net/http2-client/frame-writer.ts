import { flags, frameHeaderBytes, frameTypes, maxFrameBytes, settingIds } from './frames.ts'

/** Encoder of frames into the output of a connection. */
export type FrameWriter = {
  /** The preface of the connection, with the settings and the window of this client. */
  preface(options: { readonly maxListBytes: number; readonly windowIncrement: number }): void
  /** A header block, in as many frames as necessary. */
  headers(streamId: number, block: Uint8Array, isEnd: boolean): void
  /** At most `maxFrameBytes` of data. */
  data(streamId: number, bytes: Uint8Array, isEnd: boolean): void
  settingsAck(): void
  ping(payload: Uint8Array, isAck: boolean): void
  windowUpdate(streamId: number, increment: number): void
  reset(streamId: number, code: number): void
  goAway(code: number): void
  /** Bytes that were not passed on. */
  readonly pendingBytes: number
  /** Passes on the written bytes. */
  flush(): void
}

const slabBytes = 32 * 1024
const clientPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Creates a writer that collects frames, so that those of one turn leave in one write. */
export function createFrameWriter(write: (bytes: Buffer) => void): FrameWriter {
  let slab = Buffer.allocUnsafe(slabBytes)
  /** First byte that was not passed on, and end of the written ones. */
  let start = 0
  let end = 0

  function flush(): void {
    if (end === start) return
    const bytes = slab.subarray(start, end)
    start = end
    write(bytes)
  }

  function reserve(bytes: number): void {
    if (end + bytes <= slab.length) return
    flush()
    // Passed bytes may not have left yet: their memory is not used again.
    slab = Buffer.allocUnsafe(Math.max(slabBytes, bytes))
    start = 0
    end = 0
  }

  function begin(type: number, length: number, frameFlags: number, streamId: number): void {
    reserve(frameHeaderBytes + length)
    slab[end] = length >>> 16
    slab[end + 1] = length >>> 8
    slab[end + 2] = length
    slab[end + 3] = type
    slab[end + 4] = frameFlags
    uint32(streamId, end + 5)
    end += frameHeaderBytes
  }

  function uint32(value: number, at: number): void {
    slab[at] = value >>> 24
    slab[at + 1] = value >>> 16
    slab[at + 2] = value >>> 8
    slab[at + 3] = value
  }

  function put(bytes: Uint8Array): void {
    slab.set(bytes, end)
    end += bytes.byteLength
  }

  function put32(value: number): void {
    uint32(value, end)
    end += 4
  }

  function setting(id: number, value: number): void {
    slab[end] = 0
    slab[end + 1] = id
    end += 2
    put32(value)
  }

  return {
    get pendingBytes() {
      return end - start
    },
    flush,
    preface({ maxListBytes, windowIncrement }) {
      reserve(clientPreface.length)
      put(clientPreface)
      begin(frameTypes.settings, 12, 0, 0)
      setting(settingIds.enablePush, 0)
      setting(settingIds.maxHeaderListSize, maxListBytes)
      begin(frameTypes.windowUpdate, 4, 0, 0)
      put32(windowIncrement)
    },
    headers(streamId, block, isEnd) {
      const endStream = isEnd ? flags.endStream : 0
      for (let at = 0; at === 0 || at < block.byteLength; at += maxFrameBytes) {
        const part = block.subarray(at, at + maxFrameBytes)
        const endHeaders = at + maxFrameBytes >= block.byteLength ? flags.endHeaders : 0
        if (at === 0) begin(frameTypes.headers, part.byteLength, endHeaders | endStream, streamId)
        else begin(frameTypes.continuation, part.byteLength, endHeaders, streamId)
        put(part)
      }
    },
    data(streamId, bytes, isEnd) {
      begin(frameTypes.data, bytes.byteLength, isEnd ? flags.endStream : 0, streamId)
      put(bytes)
    },
    settingsAck: () => begin(frameTypes.settings, 0, flags.ack, 0),
    ping(payload, isAck) {
      begin(frameTypes.ping, payload.byteLength, isAck ? flags.ack : 0, 0)
      put(payload)
    },
    windowUpdate(streamId, increment) {
      begin(frameTypes.windowUpdate, 4, 0, streamId)
      put32(increment)
    },
    reset(streamId, code) {
      begin(frameTypes.reset, 4, 0, streamId)
      put32(code)
    },
    goAway(code) {
      begin(frameTypes.goAway, 8, 0, 0)
      put32(0)
      put32(code)
    },
  }
}
