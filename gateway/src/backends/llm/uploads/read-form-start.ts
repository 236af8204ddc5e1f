import { isSource } from '../../../net/http/body.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import { peekBody } from '../../../net/http/peek-body.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { RequestRules } from '../request/accept-call.ts'
import { type Form, formOf, writeFrame } from '../request/form/form.ts'
import { readFormBoundary } from '../request/form/media-type.ts'
import { scanFormStart } from '../request/form/scan.ts'
import { streamFile } from './file-stream.ts'
import type { Upload } from './upload.ts'

/** A form whose last part is a file that has not arrived completely. */
export type StartedForm = Pick<Form, 'fields'> & { readonly upload: Upload }

/** Smaller forms are read completely, hence their fields may have any order. */
const maxStartBytes = 1024 * 1024

/**
 * Reads the fields of a large form in front of its file. Undefined for all other requests, whose body is
 * unchanged, and for a file among other parts.
 */
export async function readFormStart(
  exchange: Exchange,
  { maxBodyBytes }: Pick<RequestRules, 'maxBodyBytes'>,
): Promise<StartedForm | undefined> {
  const { body, facts, forwarding } = exchange
  const { headers } = facts.request
  const found = readFormBoundary(headers['content-type'])
  if (found?.kind !== 'boundary' || !isSource(body) || headers['content-encoding'] !== undefined)
    return undefined
  const peeked = await peekBody(body, Math.min(maxStartBytes, maxBodyBytes))
  exchange.body = peeked.body
  if (peeked.kind === 'complete') return undefined
  const { buffer, byteOffset, byteLength } = peeked.start
  const start = scanFormStart(Buffer.from(buffer, byteOffset, byteLength), found.boundary)
  if (start === undefined) return undefined
  const { texts, file, contentAt } = start
  const read = formOf([...texts, { ...file, content: Buffer.alloc(0) }])
  if (read.kind === 'invalid') return undefined
  const declared = firstHeader(headers, 'content-length')
  const isDeclared = declared !== undefined && forwarding?.body === undefined
  const length = isDeclared ? Number(declared) : undefined
  const form = { source: peeked.body, contentAt, boundary: found.boundary, length }
  let isStarted = false
  const upload: Upload = {
    file,
    open(fields) {
      const { contentType, ...frame } = writeFrame(fields, file)
      const stream = streamFile(form, frame)
      const start: typeof stream.body.start = (sink) => {
        isStarted = true
        stream.body.start(sink)
      }
      return { contentType, length: stream.length, body: { ...stream.body, start } }
    },
    release() {
      if (!isStarted) form.source.cancel()
    },
  }
  return { fields: read.form.fields, upload }
}
