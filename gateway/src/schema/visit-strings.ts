import type { Schema } from './dsl.ts'
import type { Path } from './path.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from './shape.ts'

/**
 * Calls `onText` for every string of a value, with the shapes of its path in the schema, in the order of the
 * value.
 */
export function visitStrings(
  schema: Schema,
  value: unknown,
  onText: (text: string, shapes: readonly Shape[], path: Path) => void,
): void {
  const visit = (here: unknown, shapes: readonly Shape[], path: Path): void => {
    if (typeof here === 'string') onText(here, shapes, path)
    if (typeof here !== 'object' || here === null) return
    // JSON without a schema has no formats, and may be large.
    if (shapes.every((shape) => shape.kind === 'any')) return
    for (const [key, entry] of Object.entries(here)) {
      const step = Array.isArray(here) ? Number(key) : key
      visit(entry, childShapes(shapes, step), [...path, step])
    }
  }
  visit(value, alternativesOf(shapeOf(schema)), [])
}
