import { editBytes } from '../../../lib/json/edit.ts'
import type { Call } from '../request/call.ts'
import type { ObjectCall } from './object-call.ts'

/** The body of a call about a file or batch, with ids of the provider; undefined without a body. */
export function objectBody({ json, bytes }: Call, { action, stored }: ObjectCall): Buffer | undefined {
  if (json === undefined) return bytes.length === 0 ? undefined : bytes
  if (action !== 'create' || stored === undefined) return bytes
  return editBytes(json, { set: new Map([['input_file_id', JSON.stringify(stored.id)]]) })
}
