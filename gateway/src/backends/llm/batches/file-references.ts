import { ownerOf } from '../../../identity/owner.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { ObjectIds } from './object-ids.ts'

/** Ids of the files of a client, by those at the provider. */
export type OwnFiles = ReadonlyMap<string, string>

/** A body with ids of the provider in place of those for clients, and the service that has the files. */
export type FileReferences =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'replaced'
      readonly bytes: Buffer
      readonly place: string
      readonly ids: OwnFiles
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

const none: FileReferences = { kind: 'none' }
const start = Buffer.from('"file')
const quote = 0x22
const hyphen = 0x2d

/** Ids of providers are shorter. */
const minLength = 120
const maxLength = 10_000
const maxReferences = 1000

/**
 * Replaces the ids of files in a JSON body, which are complete strings. Refuses those of other clients, and
 * files of several services.
 */
export function replaceFileIds(exchange: Exchange, bytes: Buffer, ids: ObjectIds): FileReferences {
  let hit = bytes.indexOf(start)
  if (hit === -1) return none
  const pieces: Buffer[] = []
  const owner = ownerOf(exchange)
  const found = new Map<string, string>()
  let place: string | undefined
  let copied = 0
  for (; hit !== -1; hit = bytes.indexOf(start, hit + 1)) {
    const end = bytes.indexOf(quote, hit + 1)
    const length = end - hit - 1
    if (length < minLength || length > maxLength) continue
    const text = bytes.toString('latin1', hit + 1, end)
    if (!/^file[-_][\w-]+$/.test(text)) continue
    const endpoint = bytes[hit + start.length] === hyphen ? 'files' : 'anthropic_files'
    const file = ids.open(endpoint, text, owner)
    if (file === undefined) return { kind: 'refused', refusal: unknownFile(text) }
    if (pieces.length >= 2 * maxReferences) return { kind: 'refused', refusal: tooManyFiles }
    // Another model would repeat responses that guards check at their download.
    if (file.charge !== undefined) return { kind: 'refused', refusal: resultsOfBatch }
    if (place !== undefined && place !== file.place) return { kind: 'refused', refusal: severalPlaces }
    place = file.place
    found.set(file.id, text)
    pieces.push(bytes.subarray(copied, hit), Buffer.from(JSON.stringify(file.id)))
    copied = end + 1
  }
  if (place === undefined) return none
  return { kind: 'replaced', bytes: Buffer.concat([...pieces, bytes.subarray(copied)]), place, ids: found }
}

function unknownFile(id: string): Refusal {
  const message = `file "${id.slice(0, 24)}…" is not a file of this client: upload it to /v1/files of the gateway`
  return { ...fileRefused, message }
}

const fileRefused = { status: 400, code: 'file_not_found' } as const

const tooManyFiles: Refusal = {
  ...fileRefused,
  message: `a request must not have more than ${maxReferences} ids of files`,
}

const resultsOfBatch: Refusal = {
  ...fileRefused,
  message: 'the request names the results of a batch: download them, and upload them as a file of their own',
}

const severalPlaces: Refusal = {
  ...fileRefused,
  message: 'the request names files of several providers: upload them to the provider of the model',
}

export const fileElsewhere: Refusal = {
  ...fileRefused,
  message:
    'the provider of the file does not serve this model: upload the file with the header x-tollgate-model',
}
