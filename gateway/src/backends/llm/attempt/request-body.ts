import { parseJsonObject } from '../../../lib/json/json.ts'
import type { OutgoingRequest } from '../../../net/http-client/send.ts'
import type { Call } from '../request/call.ts'
import { writeForm } from '../request/form/form.ts'

/** Sets the body of a request. That of a form is its texts as a JSON object, beside its files. */
export function setBody(
  request: OutgoingRequest,
  { files, object }: Call,
  body: Uint8Array | string | undefined,
): void {
  const upload = object?.upload
  if (files === undefined && upload === undefined) {
    request.body = body
    return
  }
  const text = typeof body === 'string' ? body : Buffer.from(body ?? '{}').toString()
  const fields = parseJsonObject(text) ?? {}
  const form = upload?.open(fields) ?? { ...writeForm(fields, files ?? []), length: undefined }
  request.headers['content-type'] = form.contentType
  if (form.length !== undefined) request.headers['content-length'] = String(form.length)
  request.body = form.body
}
