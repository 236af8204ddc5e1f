import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import { isPresent, type ObjectRules, refusalOf } from './provider-objects.ts'

/** Members of a body with files and skills. */
const roots = ['messages', 'input', 'tools', 'container', 'prompt', 'images', 'mask'] as const

/** Members of parts with further parts. Others have data of clients and of models. */
const nested = [
  'content',
  'output',
  'source',
  'file',
  'attachments',
  'container',
  'environment',
  'skills',
  'input_image_mask',
] as const

/** Parts of replayed results, whose files are not read. */
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
  own: ReadonlySet<string>,
  permits: ObjectRules['permits'],
): Refusal | undefined {
  const permitsFiles = permits('files')
  const permitsSkills = permits('skills')
  if (permitsFiles && permitsSkills) return undefined
  const check: PartCheck = (part) =>
    (permitsFiles ? undefined : foreignFile(part, own)) ?? (permitsSkills ? undefined : foreignSkill(part))
  for (const name of roots) {
    const found = findIn(body[name], check)
    if (found !== undefined) return refusalAt(`${name}${found}`)
  }
  return undefined
}

/** Finds a foreign object of a part. Returns the end of its path. */
type PartCheck = (part: JsonObject) => string | undefined

function findIn(value: JsonValue | undefined, check: PartCheck): string | undefined {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = findIn(item, check)
      if (found !== undefined) return `[${index}]${found}`
    }
    return undefined
  }
  if (!isJsonObject(value) || results.has(value['type'])) return undefined
  const own = check(value)
  if (own !== undefined) return own
  for (const name of nested) {
    const found = findIn(value[name], check)
    if (found !== undefined) return `.${name}${found}`
  }
  const { variables } = value
  for (const [name, item] of isJsonObject(variables) ? Object.entries(variables) : []) {
    const found = findIn(item, check)
    if (found !== undefined) return `.variables.${name}${found}`
  }
  return undefined
}

function foreignFile(
  { file_id: id, file_ids: ids }: JsonObject,
  own: ReadonlySet<string>,
): string | undefined {
  if (isForeign(id, own)) return '.file_id'
  const isAnyForeign = Array.isArray(ids) ? ids.some((each) => isForeign(each, own)) : isForeign(ids, own)
  return isAnyForeign ? '.file_ids' : undefined
}

/** Files in buckets and at Google have addresses. */
function isForeign(value: JsonValue | undefined, own: ReadonlySet<string>): boolean {
  if (!isPresent(value) || value === '') return false
  return typeof value !== 'string' || !(own.has(value) || /^[a-z]+:\/\//.test(value))
}

/** Skills of Anthropic are the same in all accounts. */
function foreignSkill({ skill_id: id, type }: JsonObject): string | undefined {
  return isPresent(id) && type !== 'anthropic' ? '.skill_id' : undefined
}

function refusalAt(param: string): Refusal {
  if (param.endsWith('.skill_id')) return refusalOf(param)
  return {
    ...refusalOf(param),
    message: `${param} must not name a file of the provider: upload the file to /v1/files of the gateway, send its content, or permit files by sharedObjects of the model`,
  }
}
