import { memberText } from '../../../lib/json/edit.ts'
import { isJsonObject, type JsonValue } from '../../../lib/json/json.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import { isSource } from '../../../net/http/body.ts'
import { firstHeader } from '../../../net/http/headers.ts'
import type { Reply } from '../../../net/http-client/send.ts'

/** HTTP error of a target, for a JSON-RPC error. */
export type TargetRefusal =
  /**
   * JSON text of the `error` member, if the body is the JSON-RPC response to the request, as from another
   * gateway.
   */
  | { readonly kind: 'error'; readonly text: string }
  /** Status and start of a text body, for the `data` of an error. */
  | { readonly kind: 'http'; readonly data: { status: number; body?: string } }

const maxBodyChars = 2_000

/** Reads the HTTP error response of a target to the request with this id. */
export function readTargetRefusal(reply: Reply, id: JsonValue | undefined): TargetRefusal {
  const text = textOf(reply)
  if (text === undefined || text === '') return { kind: 'http', data: { status: reply.status } }
  const error = errorMember(text, id)
  if (error !== undefined) return { kind: 'error', text: error }
  return { kind: 'http', data: { status: reply.status, body: text.slice(0, maxBodyChars) } }
}

/** Text of a fully read body; undefined for media types other than text and JSON. */
function textOf({ headers, body }: Reply): string | undefined {
  if (body === undefined || isSource(body)) return undefined
  const type = firstHeader(headers, 'content-type')
  return type === undefined || /^(?:text\/|application\/(?:problem\+)?json)/i.test(type)
    ? Buffer.from(body).toString()
    : undefined
}

function errorMember(text: string, requestId: JsonValue | undefined): string | undefined {
  const json = readJsonObject(text)
  if (json.kind !== 'object' || json.value['jsonrpc'] !== '2.0') return undefined
  const { id, error } = json.value
  const isError =
    isJsonObject(error) && typeof error['code'] === 'number' && typeof error['message'] === 'string'
  const answers = id === requestId || id === null || id === undefined
  return isError && answers ? memberText(json, 'error') : undefined
}
