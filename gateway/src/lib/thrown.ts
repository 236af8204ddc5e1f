/** The message of a caught value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A caught value as an `Error`. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
