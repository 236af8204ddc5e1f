import type { Schema } from './dsl.ts'
import type { Path } from './path.ts'
import { alternativesOf, childShapes, type Shape, shapeOf } from './shape.ts'

/** Calls `onText` for every string of a value with the shapes that its place has in the schema, in the order of the value. */
export function visitStrings(
  schema: Schema,
  value: unknown,
  onText: (text: string, shapes: readonly Shape[], path: Path) => void,
): void {
  const visit = (here: unknown, shapes: readonly Shape[], path: Path): void => {
    if (typeof here === 'string') onText(here, shapes, path)
    if (typeof here !== 'object' || here === null) return
    // Free JSON has no formats, and may be large.
    if (shapes.every((shape) => shape.kind === 'any')) return
    for (const [key, entry] of Object.entries(here)) {
      const step = Array.isArray(here) ? Number(key) : key
      visit(entry, childShapes(shapes, step), [...path, step])
    }
  }
  visit(value, alternativesOf(shapeOf(schema)), [])
}
