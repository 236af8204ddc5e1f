import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** Response of one target to `initialize`. */
export type MemberInitializeResult = { target: string; result: JsonObject }

/**
 * Merges the `initialize` results of several targets: the oldest revision, which all support; the union of
 * capabilities; instructions with headings.
 */
export function mergeInitializeResults(
  introductions: readonly MemberInitializeResult[],
  version: string,
): JsonObject {
  const instructions: string[] = []
  let protocolVersion: string | undefined
  let capabilities: JsonObject = {}
  for (const { target, result } of introductions) {
    const revision = result['protocolVersion']
    // Revisions are dates, which sort as text.
    if (typeof revision === 'string' && (protocolVersion === undefined || revision < protocolVersion)) {
      protocolVersion = revision
    }
    if (isJsonObject(result['capabilities'])) capabilities = union(capabilities, result['capabilities'])
    const text = result['instructions']
    if (typeof text === 'string' && text !== '') instructions.push(`[${target}]\n${text}`)
  }
  return {
    protocolVersion: protocolVersion ?? '2025-03-26',
    capabilities,
    serverInfo: { name: 'tollgate', version },
    ...(instructions.length === 0 ? undefined : { instructions: instructions.join('\n\n') }),
  }
}

/** Union of capabilities; if both contain a value, true overrides false. */
function union(one: JsonObject, other: JsonObject): JsonObject {
  const both: JsonObject = { ...one }
  for (const [name, value] of Object.entries(other)) {
    const known = Object.hasOwn(both, name) ? both[name] : undefined
    both[name] = known === undefined ? value : unionOf(known, value)
  }
  return both
}

function unionOf(one: JsonValue, other: JsonValue): JsonValue {
  if (isJsonObject(one) && isJsonObject(other)) return union(one, other)
  if (one === false || isJsonObject(other)) return other
  return one
}
