/** Resolved name: index of the target, and name at the target. */
export type NameLocation = { index: number; name: string }

/**
 * Mapping between names at targets and names for clients. Target names contain neither `_` nor `+`, so the
 * first separator ends the target name.
 */
export type NameMapping = {
  /** Tool or prompt name for clients. */
  nameOf(index: number, name: string): string
  /** Undefined for an unknown target prefix. */
  locateName(name: string): NameLocation | undefined
  /** Resource URI (or URI template) for clients. */
  uriOf(index: number, uri: string): string
  locateUri(uri: string): NameLocation | undefined
  taskOf(index: number, task: string): string
  locateTask(task: string): NameLocation | undefined
}

const uiScheme = 'ui://'

/** Creates a mapping with target prefixes: `<target>_<name>`, `<target>+<uri>`, `ui://<target>+…`. */
export function prefixedNames(targets: readonly string[]): NameMapping {
  const indexes = new Map(targets.map((target, index) => [target, index]))

  function split(text: string, separator: string): NameLocation | undefined {
    const end = text.indexOf(separator)
    const index = end > 0 ? indexes.get(text.slice(0, end)) : undefined
    return index === undefined ? undefined : { index, name: text.slice(end + 1) }
  }

  function join(index: number, separator: string, name: string): string {
    return `${targets[index] ?? ''}${separator}${name}`
  }

  return {
    nameOf: (index, name) => join(index, '_', name),
    locateName: (name) => split(name, '_'),
    // Hosts recognize UI resources by the scheme `ui://`, so the prefix follows it.
    uriOf: (index, uri) =>
      uri.startsWith(uiScheme)
        ? uiScheme + join(index, '+', uri.slice(uiScheme.length))
        : join(index, '+', uri),
    locateUri(uri) {
      if (!uri.startsWith(uiScheme)) return split(uri, '+')
      const located = split(uri.slice(uiScheme.length), '+')
      return located && { index: located.index, name: uiScheme + located.name }
    },
    taskOf: (index, task) => join(index, '+', task),
    locateTask: (task) => split(task, '+'),
  }
}

/** Encodes a server's id or token with its target index; `text` is JSON, so that 1 and "1" differ. */
export function wrapId(index: number, text: string): string {
  return JSON.stringify(`${index}:${text}`)
}

/** Decodes the result of `wrapId`: `name` is the JSON text. Undefined for other values. */
export function unwrapId(id: unknown, targets: number): NameLocation | undefined {
  if (typeof id !== 'string') return undefined
  const match = /^(\d{1,4}):(-?\d[\d.eE+-]*|".*")$/s.exec(id)
  if (match === null) return undefined
  const index = Number(match[1])
  const name = match[2] ?? ''
  if (index >= targets || !isScalar(name)) return undefined
  return { index, name }
}

function isScalar(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' || typeof value === 'number'
  } catch {
    return false
  }
}
