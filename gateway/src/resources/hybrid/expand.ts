import { type Environment, expandReferences } from '../../config/load/environment.ts'
import { escapeReferences } from '../../config/load/escape-references.ts'
import type { JsonValue } from '../../lib/json/json.ts'
import type { Expand } from './record.ts'

const complete: readonly string[] = []

/**
 * Expands references to the environment in values of the database: only variables that the file allows
 * (`config.storage.allowedEnv`). Any other `$` is literal. A value without references remains the same
 * object.
 */
export function createExpand(allowedEnv: readonly string[], environment: Environment): Expand {
  if (allowedEnv.length === 0) return (value) => ({ value, missing: complete })
  const allowed = new Set(allowedEnv)
  return (value) => {
    if (!JSON.stringify(value).includes('$')) return { value, missing: complete }
    const missing: string[] = []
    const expanded = mapTexts(value, (text) => {
      const expansion = expandReferences(String(escapeReferences(text, allowed)), environment)
      missing.push(...expansion.missing.map(({ name }) => name))
      return expansion.text
    })
    return { value: expanded, missing: [...new Set(missing)] }
  }
}

function mapTexts(value: JsonValue, change: (text: string) => string): JsonValue {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]))
}
