import { GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySink, BodySource } from '../../../net/http/body.ts'
import type { FormFrame } from '../request/form/form.ts'

/** The body of a client with a form whose last part is a file. */
export type ClientForm = {
  readonly source: BodySource
  /** Bytes in front of the content of the file. */
  readonly contentAt: number
  readonly boundary: string
  /** Length of the body; undefined if the client has not declared it. */
  readonly length: number | undefined
}

/** A body with the content of the file between the bytes of a frame. */
export type FileStream = { readonly body: BodySource; readonly length: number | undefined }

const closing = '--'
const lineEnd = '\r\n'
const noBytes = Buffer.alloc(0)

/**
 * Forwards the file of a form, with the memory of a chunk. Fails with `bad_request` if anything follows the
 * file, because nothing in front of it could be checked before.
 */
export function streamFile(form: ClientForm, { start, delimiter }: FormFrame): FileStream {
  const { source, contentAt, boundary, length } = form
  const own = Buffer.from(`\r\n--${boundary}`)
  const around = start.length + delimiter.length - contentAt - own.length
  const body: BodySource = {
    start(sink) {
      source.start(createFileSink(sink, { skip: contentAt, own, start, delimiter, cancel: source.cancel }))
    },
    resume: () => source.resume(),
    cancel: () => source.cancel(),
  }
  return { body, length: length === undefined ? undefined : length + around }
}

type SinkOptions = FormFrame & {
  readonly skip: number
  /** Delimiter of the client. */
  readonly own: Buffer
  cancel(): void
}

function createFileSink(sink: BodySink, { skip, own, start, delimiter, cancel }: SinkOptions): BodySink {
  let state: 'start' | 'content' | 'closing' | 'over' = 'start'
  let skipped = 0
  /** Bytes that may begin a delimiter, or those behind it. */
  let rest: Buffer = noBytes

  function refuse(message: string): void {
    state = 'over'
    cancel()
    sink.fail(new GatewayError('bad_request', `multipart body ${message}`))
  }

  /** Writes the content up to the delimiter. Returns false when the sink is full. */
  function writeContent(bytes: Uint8Array): boolean {
    const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const found = content.indexOf(own)
    const end = found === -1 ? startOf(own, content) : found
    if (found !== -1) state = 'closing'
    // Copied: the source may reuse its memory.
    rest = Buffer.from(content.subarray(found === -1 ? end : found + own.length))
    return end === 0 || sink.write(content.subarray(0, end))
  }

  function writeStart(): boolean {
    state = 'content'
    return sink.write(start)
  }

  return {
    write(chunk) {
      if (state === 'over') return true
      const hidden = Math.min(skip - skipped, chunk.byteLength)
      skipped += hidden
      const isStartAccepted = state === 'start' ? writeStart() : true
      const arrived = chunk.subarray(hidden)
      const bytes = rest.length === 0 ? arrived : Buffer.concat([rest, arrived])
      let isAccepted = true
      if (state === 'closing') rest = Buffer.from(bytes)
      else isAccepted = writeContent(bytes)
      if (rest.length > own.length + lineEnd.length) refuse(fileNotLast)
      return isStartAccepted && isAccepted
    },
    end() {
      if (state === 'over') return
      const text = rest.toString('latin1')
      if (state !== 'closing' || (text !== closing && text !== closing + lineEnd)) {
        refuse(state === 'closing' ? fileNotLast : 'must end with its boundary')
        return
      }
      state = 'over'
      sink.write(Buffer.concat([delimiter, rest]))
      sink.end()
    },
    fail(error) {
      if (state === 'over') return
      state = 'over'
      sink.fail(error)
    },
  }
}

const fileNotLast = 'must end with its file: send all other fields in front of it'

/** Position where the bytes end with a part of the delimiter; their length without one. */
function startOf(delimiter: Buffer, bytes: Buffer): number {
  const first = Math.max(0, bytes.length - delimiter.length + 1)
  for (let at = bytes.indexOf(carriageReturn, first); at !== -1; at = bytes.indexOf(carriageReturn, at + 1))
    if (delimiter.subarray(0, bytes.length - at).equals(bytes.subarray(at))) return at
  return bytes.length
}

const carriageReturn = 0x0d
