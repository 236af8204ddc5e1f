import { keysPath, kinds, type Placement } from '../../resources/kinds.ts'
import { valueAt } from '../../schema/path.ts'

/** Number of records of each kind in a configuration. */
export function recordCounts(config: object): Record<string, number> {
  return Object.fromEntries(kinds.map(({ name, placement }) => [name, countAt(config, placement)]))
}

function countAt(config: object, placement: Placement): number {
  const value = valueAt(config, placement.path)
  switch (placement.kind) {
    case 'list':
    case 'keys':
      return Array.isArray(value) ? value.length : 0
    case 'map':
    case 'policies':
      return fieldsOf(value).length
    case 'settings':
    case 'catalog': {
      const present = fieldsOf(value).filter((name) => placement.fields.includes(name))
      return present.length === 0 ? 0 : 1
    }
  }
}

function fieldsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => (field === undefined ? [] : [name]))
}

/** Number of virtual keys in a configuration whose text is stored. */
export function plainTextKeys(config: object): number {
  const keys = valueAt(config, keysPath)
  if (!Array.isArray(keys)) return 0
  let count = 0
  for (const key of keys as readonly unknown[])
    if (typeof key === 'object' && key !== null && typeof Reflect.get(key, 'key') === 'string') count += 1
  return count
}
