import type { JsonObject, JsonValue } from '../../../lib/json/json.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { OwnFiles } from '../batches/file-references.ts'
import { isPrivateAddress, isPublicUrl } from './file-address.ts'
import { findPart, type PartPlaces } from './find-part.ts'
import { isPresent, type ObjectRules, refusalOf } from './provider-objects.ts'

/** Members with files and skills. Others have data of clients and of models. */
const places: PartPlaces = {
  roots: ['messages', 'input', 'tools', 'container', 'prompt', 'images', 'mask', 'image', 'system'],
  nested: [
    'content',
    'output',
    'source',
    'file',
    'image_url',
    'video_url',
    'audio_url',
    'attachments',
    'container',
    'environment',
    'skills',
    'input_image_mask',
  ],
  // Files of replayed results are not read.
  isSkipped: ({ type }) => results.has(type),
}

const results: ReadonlySet<JsonValue | undefined> = new Set([
  'code_execution_output',
  'bash_code_execution_output',
])

/**
 * Returns a refusal for a file or skill in the account of the provider, whose owner is unknown. `own` are ids
 * at the provider of files that the client has named by its own ids.
 */
export function checkFiles(
  body: JsonObject,
  own: OwnFiles,
  permits: ObjectRules['permits'],
): Refusal | undefined {
  const permitsFiles = permits('files')
  const permitsSkills = permits('skills')
  if (permitsFiles && permitsSkills) return undefined
  const param = findPart(
    body,
    places,
    (part) =>
      (permitsFiles ? undefined : foreignFile(part, own)) ?? (permitsSkills ? undefined : foreignSkill(part)),
  )
  if (param === undefined) return undefined
  return param.endsWith('.skill_id') ? refusalOf(param) : fileRefusal(param)
}

/** Members of parts with addresses. */
const addresses = ['url', 'image_url', 'video_url', 'audio_url', 'file_url', 'file_data'] as const

function foreignFile(part: JsonObject, own: OwnFiles): string | undefined {
  const { file_id: id, file_ids: ids } = part
  if (isForeign(id, own)) return '.file_id'
  const isAnyForeign = Array.isArray(ids) ? ids.some((each) => isForeign(each, own)) : isForeign(ids, own)
  if (isAnyForeign) return '.file_ids'
  const name = addresses.find((each) => isPrivateAddress(part[each]))
  return name && `.${name}`
}

/** Chat completions for Gemini have public addresses as ids. */
function isForeign(value: JsonValue | undefined, own: OwnFiles): boolean {
  if (!isPresent(value) || value === '') return false
  return typeof value !== 'string' || !(own.has(value) || isPublicUrl(value))
}

/** Skills of Anthropic are the same in all accounts. */
function foreignSkill({ skill_id: id, type }: JsonObject): string | undefined {
  return isPresent(id) && type !== 'anthropic' ? '.skill_id' : undefined
}

/** Refusal of a file whose owner is unknown. */
export function fileRefusal(param: string): Refusal {
  return {
    ...refusalOf(param),
    message: `${param} must not name a file of the provider: upload the file to /v1/files of the gateway, send its content, or permit files by sharedObjects of the model`,
  }
}
