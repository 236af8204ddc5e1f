import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import type { TargetFailure } from '../message/message.ts'

/**
 * Failure of a cancelled request. Its sender ignores it (MCP 2025-11-25, Cancellation), but the waiting
 * connection becomes free. The code is that of the Language Server Protocol.
 */
export const requestCancelled: TargetFailure = {
  kind: 'refused',
  status: 200,
  code: -32800,
  message: 'the request was cancelled',
}

/** A `notifications/cancelled`: the request id as JSON text, and the notification with a replaced id. */
export type Cancelled = { readonly id: string; withId(id: string): string }

/** Parses a `notifications/cancelled`; undefined without a request id. */
export function readCancelled(text: string): Cancelled | undefined {
  const json = readJsonObject(text)
  const paramsText = json.kind === 'object' ? memberText(json, 'params') : undefined
  const params = paramsText === undefined ? undefined : readJsonObject(paramsText)
  if (json.kind !== 'object' || params?.kind !== 'object') return undefined
  const id = memberText(params, 'requestId')
  if (id === undefined) return undefined
  return {
    id,
    withId(other) {
      const renamed = editTopLevel(params, { set: new Map([['requestId', other]]) })
      return editTopLevel(json, { set: new Map([['params', renamed]]) })
    },
  }
}
