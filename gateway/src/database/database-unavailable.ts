/**
 * The database is unreachable or returned an error. `message` is for the log and the API: it names the
 * database, and contains neither credentials nor values.
 */
export class DatabaseUnavailable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'DatabaseUnavailable'
  }
}
