import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { GatewayError, type GatewayErrorCode } from '../../lib/gateway-error.ts'

/** Error codes of decoding; they differ between a client's body and an upstream's. */
export type DecodeErrors = {
  tooLarge: GatewayErrorCode
  malformed: GatewayErrorCode
  unknown: GatewayErrorCode
}

type Decompress = (
  body: Uint8Array,
  options: { maxOutputLength: number },
  callback: (error: Error | null, result: Buffer) => void,
) => void

const decompressors = new Map<string, Decompress>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
  ['zstd', zstdDecompress],
])

/** Whether a body has no content coding. */
export function isPlain(encoding: string | undefined): boolean {
  return encoding === undefined || encoding === '' || encoding === 'identity'
}

/**
 * Decodes one content coding (RFC 9110 section 8.4.1). Stops above `maxBytes`, which bounds the cost of a
 * decompression bomb. Rejects nested codings.
 */
export function decode(
  body: Uint8Array,
  encoding: string,
  maxBytes: number,
  errors: DecodeErrors,
): Promise<Buffer> {
  const decompress = decompressors.get(encoding.trim().toLowerCase())
  if (!decompress) {
    const message = 'unsupported content-encoding: use gzip, deflate, br, zstd or none'
    return Promise.reject(new GatewayError(errors.unknown, message))
  }
  return new Promise((resolve, reject) => {
    decompress(body, { maxOutputLength: maxBytes }, (error, result) => {
      if (!error) resolve(result)
      else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') {
        reject(new GatewayError(errors.tooLarge, `decoded body is larger than ${maxBytes} bytes`))
      } else
        reject(
          new GatewayError(errors.malformed, 'body does not match its content-encoding', { cause: error }),
        )
    })
  })
}
