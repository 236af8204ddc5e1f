/** Where a name that a client used leads to: the index of a target, and the target's own name. */
export type NameLocation = { index: number; name: string }

/**
 * How names of several targets live side by side. Targets' names hold neither `_` nor `+`, so the first separator ends the
 * target's name, whatever the rest looks like.
 */
export type NameMapping = {
  /** The name of a tool or prompt as clients see it. */
  nameOf(index: number, name: string): string
  /** Undefined where no target has such a prefix. */
  locateName(name: string): NameLocation | undefined
  /** The URI (or URI template) of a resource as clients see it. */
  uriOf(index: number, uri: string): string
  locateUri(uri: string): NameLocation | undefined
  taskOf(index: number, task: string): string
  locateTask(task: string): NameLocation | undefined
}

const uiScheme = 'ui://'

/** Names with the target's name in front: `<target>_<name>`, `<target>+<uri>`, `ui://<target>+…`. */
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
    // Hosts show `ui://` resources in frames and know them by that scheme, so there it stays in front.
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

/** A server's own id or token with its target in front; `text` is JSON, so that 1 and "1" stay two. */
export function wrapId(index: number, text: string): string {
  return JSON.stringify(`${index}:${text}`)
}

/** Takes apart what `wrapId` made: `name` is the JSON text. Undefined for anything else. */
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
