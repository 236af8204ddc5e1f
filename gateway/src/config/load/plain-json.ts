import type { JsonObject } from '../../lib/json/json.ts'
import type { JsonLimits } from '../../lib/json/limits.ts'
import { readJsonObject } from '../../lib/json/text.ts'

/** Elements of configurations with 100,000 routes. */
const limits: JsonLimits = { maxDepth: 100, maxMembers: 10_000_000, maxElements: 20_000_000 }

/** References to the environment, absent values, empty names, and a name that objects treat differently. */
const needsYaml = /\$|\bnull\b|""\s*:|__proto__/

/**
 * Parses a configuration in JSON, which takes a fraction of the time of YAML. Undefined if the text is not
 * JSON, or if its meaning as a configuration differs from its JSON value: then it is read as YAML.
 */
export function parsePlainJson(text: string): JsonObject | undefined {
  if (!/^\s*\{/.test(text) || needsYaml.test(text)) return undefined
  const json = readJsonObject(text, limits)
  return json.kind === 'object' && json.hasLargeNumbers !== true ? json.value : undefined
}
