import { crc32 } from 'node:zlib'

/** Encodes a message of `application/vnd.amazon.eventstream` with headers of type string. */
export function encodeMessage(
  headers: Readonly<Record<string, string>>,
  payload: string | Uint8Array,
): Buffer {
  const encoded = Object.entries(headers).map(([name, value]) => {
    const bytes = Buffer.from(value)
    const head = Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7, 0, 0])])
    head.writeUInt16BE(bytes.length, head.length - 2)
    return Buffer.concat([head, bytes])
  })
  return encodeRaw(Buffer.concat(encoded), Buffer.from(payload))
}

/** The same with headers in bytes. */
export function encodeRaw(headers: Buffer, payload: Buffer): Buffer {
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(16 + headers.length + payload.length, 0)
  prelude.writeUInt32BE(headers.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const message = Buffer.concat([prelude, headers, payload])
  const end = Buffer.alloc(4)
  end.writeUInt32BE(crc32(message), 0)
  return Buffer.concat([message, end])
}

/** An event as the services send it. */
export function encodeEvent(type: string, body: object): Buffer {
  const headers = { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }
  return encodeMessage(headers, JSON.stringify(body))
}

/** An exception in a stream. */
export function encodeException(type: string, message: string): Buffer {
  const headers = {
    ':exception-type': type,
    ':content-type': 'application/json',
    ':message-type': 'exception',
  }
  return encodeMessage(headers, JSON.stringify({ message }))
}
