import { editTopLevel, memberText, readJsonObject } from '../../../lib/json/text.ts'
import type { TargetFailure } from '../message/message.ts'

/**
 * What a cancelled request ends with. Its sender ignores it (MCP 2025-11-25, Cancellation), but the connection that waits
 * for the answer becomes free. The code is the one that the Language Server Protocol has for it.
 */
export const requestCancelled: TargetFailure = {
  kind: 'refused',
  status: 200,
  code: -32800,
  message: 'the request was cancelled',
}

/** A `notifications/cancelled`: the id of the request, as JSON text, and the notification with another id in its place. */
export type Cancelled = { readonly id: string; withId(id: string): string }

/** Reads the text of a `notifications/cancelled`; undefined where it names no request. */
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
