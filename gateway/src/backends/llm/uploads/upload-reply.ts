import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { type JsonText, readJsonObject } from '../../../lib/json/text.ts'
import type { ObjectCall } from '../batches/object-call.ts'
import type { ObjectIds } from '../batches/object-ids.ts'
import { edits, sealed } from '../batches/sealed-members.ts'
import type { Attempt } from '../request/call.ts'

/** Ids for clients in the description of an upload, of a part, and of the file of a complete upload. */
export function uploadEdits(
  attempt: Attempt,
  object: ObjectCall,
  json: JsonText,
  ids: ObjectIds,
): Map<string, string> {
  const { stored } = object
  const part = (id: string) =>
    sealed(attempt, object, { endpoint: 'upload_parts', id, ids, inputFile: stored?.id })
  const upload = (id: string) => sealed(attempt, object, { endpoint: 'uploads', id, ids })
  if (object.action === 'part') return edits(json.value, { id: part, upload_id: upload })
  const set = edits(json.value, { id: upload })
  const file = readJsonObject(memberText(json, 'file') ?? '')
  if (file.kind !== 'object') return set
  const own = edits(file.value, { id: (id) => sealed(attempt, object, { endpoint: 'files', id, ids }) })
  return set.set('file', editTopLevel(file, { set: own }))
}
