import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'
import type { Refusal } from '../../../pipeline/errors.ts'
import type { ClientEndpoint } from '../request/endpoints.ts'
import { isPublicUrl } from './file-address.ts'
import { findDeep, type PartCheck } from './find-part.ts'
import type { ObjectKind } from './object-kinds.ts'
import { fileRefusal } from './provider-files.ts'
import { isPresent, type ObjectRules, refusalOf } from './provider-objects.ts'

type Permits = ObjectRules['permits']

/**
 * Returns a refusal for files, caches and data stores that a cloud reads with the rights of the gateway's
 * account.
 */
export function checkCloudObjects(
  endpoint: ClientEndpoint,
  body: JsonObject,
  permits: Permits,
): Refusal | undefined {
  switch (endpoint) {
    case 'generate_content':
    case 'gemini_count_tokens':
    case 'embed_content':
    case 'batch_embed_contents':
      return refusalAt(findDeep(body, geminiData, (part) => googleObject(part, permits)))
    case 'converse':
    case 'converse_count':
    case 'invoke':
      return permits('files') ? undefined : refusalAt(findDeep(body, bedrockData, bucketFile))
    case 'chat':
      return refusalAt(objectOfChat(body, permits))
    default:
      return undefined
  }
}

/** Members with data of clients and of models. */
const geminiData: ReadonlySet<string> = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'parameters_json_schema',
  'responseSchema',
  'response_schema',
  'responseJsonSchema',
  'response_json_schema',
  'labels',
])
const bedrockData: ReadonlySet<string> = new Set(['toolUse', 'json', 'inputSchema', 'requestMetadata'])

/** Members that name objects of an account at Google, and their kinds. */
const googleMembers: readonly (readonly [string, ObjectKind])[] = [
  ['cachedContent', 'caches'],
  ['cached_content', 'caches'],
  ['fileSearch', 'vectorStores'],
  ['file_search', 'vectorStores'],
  ['retrieval', 'vectorStores'],
]

function googleObject(part: JsonObject, permits: Permits): string | undefined {
  for (const name of ['fileUri', 'file_uri']) {
    const { [name]: uri } = part
    if (isNamed(uri) && !isPublicUrl(uri) && !permits('files')) return `.${name}`
  }
  return namedMember(part, permits)
}

function namedMember(part: JsonObject, permits: Permits): string | undefined {
  const found = googleMembers.find(([name, kind]) => isNamed(part[name]) && !permits(kind))
  return found && `.${found[0]}`
}

/** Converse and the models of Amazon have files in buckets. */
const bucketFile: PartCheck = ({ s3Location }) => (isPresent(s3Location) ? '.s3Location' : undefined)

/** Caches of Gemini, and data sources of Azure, which Azure may read with an identity of its resource. */
function objectOfChat(body: JsonObject, permits: Permits): string | undefined {
  if (isPresent(body['data_sources']) && !permits('vectorStores')) return 'data_sources'
  const { extra_body: extra } = body
  const google = isJsonObject(extra) ? extra['google'] : undefined
  const ofExtra = isJsonObject(google) ? namedMember(google, permits) : undefined
  if (ofExtra !== undefined) return `extra_body.google${ofExtra}`
  return namedMember(body, permits)?.slice(1)
}

function isNamed(value: JsonValue | undefined): boolean {
  return isPresent(value) && value !== ''
}

function refusalAt(path: string | undefined): Refusal | undefined {
  if (path === undefined) return undefined
  const param = path.replace(/^\./, '')
  return /(?:file_?uri|s3Location)$/i.test(param) ? fileRefusal(param) : refusalOf(param)
}
