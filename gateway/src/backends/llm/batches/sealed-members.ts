import { ownerOf } from '../../../identity/owner.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { Attempt } from '../request/call.ts'
import { placeOf } from '../stored/sealed-ids.ts'
import type { ObjectCall } from './object-call.ts'
import type { ObjectIds, SealedObject, StoredObject } from './object-ids.ts'

/** Texts of members that have a text. */
export function edits(
  value: JsonObject,
  members: Readonly<Record<string, (text: string) => string>>,
): Map<string, string> {
  const set = new Map<string, string>()
  for (const [name, replace] of Object.entries(members)) {
    const text = value[name]
    if (typeof text === 'string') set.set(name, JSON.stringify(replace(text)))
  }
  return set
}

type Sealing = Partial<Pick<StoredObject, 'batch' | 'inputFile' | 'charge'>> & {
  endpoint: SealedObject
  id: string
  ids: ObjectIds
}

/** The id for the client; that of the path if the object is the same. */
export function sealed(
  { exchange, candidate, call }: Attempt,
  { action, stored }: ObjectCall,
  { endpoint, id, ids, batch, inputFile, charge }: Sealing,
): string {
  if (action !== 'create' && call.endpoint === endpoint && id === stored?.id) return stored.text
  const { target } = candidate
  const object: StoredObject = {
    id,
    requestModel: exchange.facts.llm?.requestModel ?? '',
    configuredModel: target.configuredModel,
    place: placeOf(target),
    batch,
    inputFile,
    charge,
  }
  return ids.seal(endpoint, object, ownerOf(exchange))
}
