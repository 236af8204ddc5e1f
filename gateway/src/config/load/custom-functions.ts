import { type CustomFunction, parseCustomFunctions, withCustomFunctions } from '../../cel/custom-functions.ts'
import { isJsonObject } from '../../lib/json/json.ts'
import type { Schema } from '../../schema/dsl.ts'
import type { Path } from '../../schema/path.ts'
import { visitStrings } from '../../schema/visit-strings.ts'

/**
 * Adds the definitions of `config.customFunctions` to the expressions that use them, in place: an expression
 * then means the same wherever it is compiled. Invalid definitions are left to the checks.
 */
export function addCustomFunctions(schema: Schema, value: unknown): void {
  const functions = functionsOf(value)
  if (functions.length === 0) return
  const changes: { path: Path; text: string }[] = []
  visitStrings(schema, value, (text, shapes, path) => {
    if (!shapes.some((shape) => shape.kind === 'string' && shape.meta.format === 'cel')) return
    const complete = withCustomFunctions(text, functions)
    if (complete !== text) changes.push({ path, text: complete })
  })
  for (const { path, text } of changes) replaceAt(value, path, text)
}

function functionsOf(value: unknown): readonly CustomFunction[] {
  const config = isJsonObject(value) ? value['config'] : undefined
  const text = isJsonObject(config) ? config['customFunctions'] : undefined
  const parsed = typeof text === 'string' ? parseCustomFunctions(text) : undefined
  return parsed?.kind === 'functions' ? parsed.functions : []
}

function replaceAt(value: unknown, path: Path, text: string): void {
  const last = path.at(-1)
  let parent: unknown = value
  for (const step of path.slice(0, -1)) {
    if (typeof parent !== 'object' || parent === null) return
    parent = Reflect.get(parent, step)
  }
  if (typeof parent === 'object' && parent !== null && last !== undefined) Reflect.set(parent, last, text)
}
