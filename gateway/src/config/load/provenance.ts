/** Origin of configuration objects: those of the config API are marked, all others are from the file. */
export type Provenance = {
  /** Marks a value of the config API, with every object in it. */
  markApi(value: unknown): void
  isFromApi(node: object): boolean
}

export function createProvenance(): Provenance {
  const marked = new WeakSet<object>()

  function mark(value: unknown): void {
    if (typeof value !== 'object' || value === null || marked.has(value)) return
    marked.add(value)
    for (const member of Object.values(value)) mark(member)
  }

  return { markApi: mark, isFromApi: (node) => marked.has(node) }
}
