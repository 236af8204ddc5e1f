/** Calls of a conversation whose results have not been read. */
export type OpenCalls = {
  /** Adds a call, and returns its id; calls without one receive a generated id. */
  add(name: string, id: string | undefined): string
  /** Removes the call of a result, by its id or else by its name, and returns the id. */
  answer(name: string, id: string | undefined): string | undefined
}

/** Chat finds the call of a result by its id, which is optional in the Gemini API. */
export function createOpenCalls(): OpenCalls {
  const open: { id: string; name: string }[] = []
  let count = 0
  return {
    add(name, given) {
      const id = given ?? `call_${count}`
      count += 1
      open.push({ id, name })
      return id
    },
    answer(name, id) {
      const byId = id === undefined ? -1 : open.findIndex((call) => call.id === id)
      const index = byId === -1 ? open.findIndex((call) => call.name === name) : byId
      return index === -1 ? undefined : open.splice(index, 1)[0]?.id
    },
  }
}
