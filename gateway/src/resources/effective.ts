import { configSchema } from '../config/schema.ts'
import type { ConfigTree } from '../config/validate.ts'
import { describe, openChoice, type Shape, shapesUnder } from '../schema/shape.ts'
import { isTree } from './overlay.ts'
import type { Resources } from './resources.ts'

/** Where an item of the effective configuration is from: the path of what the database adds, beside what is from the file. */
export type Sources = readonly { readonly path: string; readonly source: 'file' | 'database' }[]

/** What runs: file and database together, without secrets; and where each part of it is from. */
export function effectiveConfig(resources: Resources): { config: unknown; sources: Sources } {
  const { config, file } = resources.effective()
  return { config: masked(config, openChoice(describe(configSchema))), sources: sourcesOf(config, file) }
}

const mask = '***'

/** The value with every secret replaced; lists and maps marked as secret as a whole. */
function masked(value: unknown, shapes: readonly Shape[]): unknown {
  if (value === undefined || value === null) return value
  if (shapes.some(({ meta }) => meta.secret === true)) return mask
  if (typeof value !== 'object') return value
  // Free JSON may hold what people put there; its shape says nothing about secrets.
  if (shapes.length > 0 && shapes.every(({ kind }) => kind === 'any')) return value
  if (Array.isArray(value)) return value.map((item) => masked(item, shapesUnder(shapes, 0)))
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, masked(entry, shapesUnder(shapes, key))]),
  )
}

/** Parts are the same objects as in the file exactly where they are from there. */
function sourcesOf(config: ConfigTree, file: ConfigTree): Sources {
  const sources: Sources[number][] = []
  const visit = (here: unknown, own: unknown, path: readonly string[]): void => {
    const source = here === own ? 'file' : 'database'
    if (Array.isArray(here)) {
      const items = new Set<unknown>(Array.isArray(own) ? own : [])
      here.forEach((item, index) => {
        sources.push({ path: `${path.join('.')}[${index}]`, source: items.has(item) ? 'file' : 'database' })
      })
    } else if (isTree(here) && (path.length < deepestSection || (own !== undefined && here !== own))) {
      for (const [key, entry] of Object.entries(here)) visit(entry, ownMember(own, key), [...path, key])
    } else sources.push({ path: path.join('.'), source })
  }
  visit(config, file, [])
  return sources
}

/** Down to here, parts are told apart wherever they are from: `llm.models`, `gateways.default`. */
const deepestSection = 2

function ownMember(holder: unknown, key: string): unknown {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key)) return undefined
  return Reflect.get(holder, key)
}
