import type { JsonObject } from '../../../lib/json/json.ts'
import type { BodySource } from '../../../net/http/body.ts'
import type { PartHead } from '../request/form/scan.ts'

/** A form whose file is streamed. */
export type Upload = {
  readonly file: PartHead
  /** The form for the provider with these fields. May be called once. */
  open(fields: JsonObject): UploadBody
  /** Discards the file, unless it is forwarded. Idempotent. */
  release(): void
}

export type UploadBody = {
  readonly contentType: string
  readonly body: BodySource
  /** Undefined if the client has not declared the length of its body. */
  readonly length: number | undefined
}
