import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'

/** Path in the document, for messages. */
export type DocumentPath = readonly (string | number)[]

/** Error in an OpenAPI document. */
export class DocumentError extends Error {
  readonly path: DocumentPath

  constructor(place: DocumentPath, message: string) {
    super(message)
    this.name = 'DocumentError'
    this.path = place
  }
}

/** Maximum length of a chain of references. */
const maxHops = 20

/**
 * Resolves a `$ref` (OpenAPI 3.1 section 4.8.23); siblings of the reference override members of its target.
 * Only references within the document are followed: others would make the gateway read files or call servers
 * without configuration. Throws a `DocumentError`.
 */
export function resolveReference(
  document: JsonObject,
  value: JsonValue | undefined,
  place: DocumentPath,
): JsonObject {
  let current = value
  let siblings: JsonObject | undefined
  for (let hops = 0; hops <= maxHops; hops += 1) {
    if (!isJsonObject(current)) throw new DocumentError(place, 'must be an object')
    const { $ref: reference, ...others } = current
    if (reference === undefined) return siblings ? { ...current, ...siblings } : current
    if (typeof reference !== 'string') throw new DocumentError(place, '$ref must be a string')
    siblings = { ...others, ...siblings }
    current = lookUp(document, reference, place)
  }
  throw new DocumentError(place, `$ref must not exceed ${maxHops} references`)
}

/** Value of a reference, a JSON pointer in a URI fragment (RFC 6901 section 6). */
function lookUp(document: JsonObject, reference: string, place: DocumentPath): JsonValue {
  if (reference !== '#' && !reference.startsWith('#/')) {
    throw new DocumentError(place, `"${reference}" refers to another document: only #/… is supported`)
  }
  let current: JsonValue | undefined = document
  for (const step of reference.split('/').slice(1)) {
    const key = decodeStep(step)
    if (isJsonObject(current) && key !== undefined && Object.hasOwn(current, key)) current = current[key]
    else if (Array.isArray(current) && key !== undefined && /^\d{1,6}$/.test(key))
      current = current[Number(key)]
    else current = undefined
  }
  if (current === undefined) throw new DocumentError(place, `"${reference}" does not exist in the document`)
  return current
}

function decodeStep(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}
