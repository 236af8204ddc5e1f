import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/json.ts'

/** A place in the document, for messages. */
export type DocumentPath = readonly (string | number)[]

/** Something in a document that keeps it from being used. */
export class DocumentError extends Error {
  readonly path: DocumentPath

  constructor(place: DocumentPath, message: string) {
    super(message)
    this.name = 'DocumentMistake'
    this.path = place
  }
}

/** References may lead to references, but not for ever. */
const maxHops = 20

/**
 * The object itself, or the one its `$ref` leads to (OpenAPI 3.1 section 4.8.23), with what stands beside the reference
 * laid over it. Only references within the document are followed: another one would make the gateway read files or
 * call servers that nobody configured. Throws a `DocumentMistake`.
 */
export function resolveReference(
  document: JsonObject,
  value: JsonValue | undefined,
  place: DocumentPath,
): JsonObject {
  let current = value
  let beside: JsonObject | undefined
  for (let hops = 0; hops <= maxHops; hops += 1) {
    if (!isJsonObject(current)) throw new DocumentError(place, 'must be an object')
    const { $ref: reference, ...others } = current
    if (reference === undefined) return beside ? { ...current, ...beside } : current
    if (typeof reference !== 'string') throw new DocumentError(place, '$ref must be a string')
    beside = { ...others, ...beside }
    current = lookUp(document, reference, place)
  }
  throw new DocumentError(place, `$ref leads through more than ${maxHops} references`)
}

/** The value a reference names, a JSON pointer in a URI fragment (RFC 6901 section 6). */
function lookUp(document: JsonObject, reference: string, place: DocumentPath): JsonValue {
  if (reference !== '#' && !reference.startsWith('#/')) {
    throw new DocumentError(place, `"${reference}" leads out of the document; only #/… is followed`)
  }
  let current: JsonValue | undefined = document
  for (const step of reference.split('/').slice(1)) {
    const key = decodeStep(step)
    if (isJsonObject(current) && key !== undefined && Object.hasOwn(current, key)) current = current[key]
    else if (Array.isArray(current) && key !== undefined && /^\d{1,6}$/.test(key))
      current = current[Number(key)]
    else current = undefined
  }
  if (current === undefined) throw new DocumentError(place, `"${reference}" leads nowhere`)
  return current
}

function decodeStep(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}
