import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/json.ts'

/** What one target answered to `initialize`. */
export type MemberInitializeResult = { target: string; result: JsonObject }

/**
 * One `initialize` result for several targets: the oldest revision, since all of them speak it to the client; everything any
 * of them can do; their instructions under headings.
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
    const words = result['instructions']
    if (typeof words === 'string' && words !== '') instructions.push(`[${target}]\n${words}`)
  }
  return {
    protocolVersion: protocolVersion ?? '2025-03-26',
    capabilities,
    serverInfo: { name: 'tollgate', version },
    ...(instructions.length === 0 ? undefined : { instructions: instructions.join('\n\n') }),
  }
}

/** Everything that either says it can; where both say something, a yes wins over a no. */
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
