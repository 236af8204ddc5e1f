/**
 * The database refuses the content of a batch in its plainest form. The batch can be written with less
 * content only. `message` contains no values.
 */
export class BatchRefused extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'BatchRefused'
  }
}

/** Whether an error is one of the program or of a value, not of the database. */
export function isValueError(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError
}
