import type { Path } from '../../../../schema/path.ts'
import type { HeaderValue } from '../../../own-kinds/gateway-policy/transformation.ts'
import type { Mistake } from './field.ts'

/** A list of headers as a map of the Config. */
export function headerMap(values: readonly HeaderValue[]): Record<string, string> {
  return Object.fromEntries(values.map(({ name, value }) => [name, value]))
}

/** Reports headers that a list repeats, of which a map would have the last. */
export function repeatedHeaders(values: readonly HeaderValue[] = [], path: Path): Mistake[] {
  const seen = new Set<string>()
  return values.flatMap(({ name }, index) => {
    const lower = name.toLowerCase()
    if (!seen.has(lower)) {
      seen.add(lower)
      return []
    }
    return [{ path: [...path, index, 'name'], message: `must be unique, and ${name} is repeated` }]
  })
}

/** Path of a header in its list, for the name of a member of the map. */
export function headerPath(values: readonly HeaderValue[] = [], name: string | number): Path {
  const index = values.findIndex((value) => value.name === name)
  return index < 0 ? [name] : [index, 'value']
}
